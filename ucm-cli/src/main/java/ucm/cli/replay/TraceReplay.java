package ucm.cli.replay;

import java.time.Duration;
import org.slf4j.event.Level;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.cli.replay.PrefixClient.Served;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.HitPolicy;

/** Counts what comes of the requests of a trace, also in metrics, as a connector does. */
final class TraceReplay extends StoreReplay {

  private final StoreMetrics.Counter askedTokens;
  private final StoreMetrics.Counter hitTokens;
  private final StoreMetrics.Histogram hitRates;
  private Served served = new Served(0, 0, 0, 0, 0);
  private long tokens;

  TraceReplay(
      Store store,
      BlockLayout layout,
      Duration timeout,
      long limit,
      StoreMetrics metrics,
      ConnectorSettings settings) {
    super(store, layout, timeout, limit, settings);
    this.askedTokens = metrics.counter("total_prefix_query_tokens", "Tokens of prompts asked for.");
    this.hitTokens = metrics.counter("ucm_hit_tokens", "Tokens of those found outside.");
    this.hitRates =
        metrics.histogram(
            "interval_lookup_hit_rates", "Share of a prompt's blocks that was found outside.");
  }

  @Override
  void serve(TraceRequest request, HitPolicy policy) throws InterruptedException {
    BlockIds ids = storeIds(request);
    makeRoom(ids.size());
    PrefixClient client =
        new PrefixClient(store, memory, policy, store.keepsBytes(), timeout, Level.DEBUG);
    Served now = client.serve(name(request, requests()), request.inputTokens(), ids);
    int hit = request.prefixTokens((int) now.hits());
    served = served.plus(now);
    tokens += hit;
    askedTokens.add(request.inputTokens());
    hitTokens.add(hit);
    if (now.blocks() > 0) {
      hitRates.record(now.hitRate());
    }
  }

  /** What was served so far. */
  Served served() {
    return served;
  }

  /** Tokens of the blocks that were hit. */
  long hitTokens() {
    return tokens;
  }
}
