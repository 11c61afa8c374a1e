package ucm.cli.replay;

import java.time.Duration;
import org.slf4j.event.Level;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.cli.runtime.EngineMemory;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.HitPolicy;

/** Sends each request of a trace through a store and counts what comes of it. Used by one thread. */
public final class TraceReplay implements TraceVisitor, AutoCloseable {

  private static final int FIRST_PAGES = 256;

  private final Store store;
  private final BlockLayout layout;
  private final Duration timeout;
  private final long limit;
  private final ConnectorSettings settings;
  private final StoreMetrics.Counter askedTokens;
  private final StoreMetrics.Counter hitTokens;
  private final StoreMetrics.Histogram hitRates;
  private EngineMemory memory;
  private Totals totals = new Totals(0, 0, 0, 0, 0, 0, 0);

  /** What was counted so far; times from look-up to the end of loads, and of dumps. */
  record Totals(
      long requests,
      long blocks,
      long hitBlocks,
      long hitTokens,
      long dumpedBlocks,
      long loadNanos,
      long dumpNanos) {

    double hitRate() {
      return blocks == 0 ? 0 : (double) hitBlocks / blocks;
    }

    private Totals with(PrefixClient.Served served, long tokens) {
      return new Totals(
          requests + 1,
          blocks + served.blocks(),
          hitBlocks + served.hits(),
          hitTokens + tokens,
          dumpedBlocks + served.dumped(),
          loadNanos + served.loadNanos(),
          dumpNanos + served.dumpNanos());
    }
  }

  /**
   * A replay that stops looking after {@code limit} requests.
   *
   * @param store closed with the replay
   * @param timeout for each task
   * @param metrics where requests are counted, as the connector counts them
   * @param settings say how much of what is found is used
   */
  TraceReplay(
      Store store,
      BlockLayout layout,
      Duration timeout,
      long limit,
      StoreMetrics metrics,
      ConnectorSettings settings) {
    this.store = store;
    this.layout = layout;
    this.timeout = timeout;
    this.limit = limit;
    this.settings = settings;
    this.memory = new EngineMemory(layout, FIRST_PAGES);
    this.askedTokens = metrics.counter("total_prefix_query_tokens", "Tokens of prompts asked for.");
    this.hitTokens = metrics.counter("ucm_hit_tokens", "Tokens of those found outside.");
    this.hitRates =
        metrics.histogram(
            "interval_lookup_hit_rates", "Share of a prompt's blocks that was found outside.");
  }

  @Override
  public void request(TraceRequest request) {
    if (totals.requests == limit) {
      return;
    }
    BlockIds ids = storeIds(request);
    if (ids.size() > memory.pages()) {
      memory.close();
      memory = new EngineMemory(layout, 2 * ids.size());
    }
    long number = totals.requests + 1;
    String name = request.requestId().isEmpty() ? "trace-" + number : request.requestId();
    HitPolicy policy = new HitPolicy(settings, request.blockTokens());
    PrefixClient client =
        new PrefixClient(store, memory, policy, store.keepsBytes(), timeout, Level.DEBUG);
    try {
      PrefixClient.Served served = client.serve(name, request.inputTokens(), ids);
      long tokens = request.prefixTokens(served.hits());
      totals = totals.with(served, tokens);
      askedTokens.add(request.inputTokens());
      hitTokens.add(tokens);
      if (served.blocks() > 0) {
        hitRates.record((double) served.hits() / served.blocks());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("the replay was interrupted", e);
    }
  }

  /**
   * The ids under which the request's blocks are stored. Ids of traces that count from 0 are spread
   * over all 16 bytes, as hashes are, because stores choose folders by their digits.
   */
  public static BlockIds storeIds(TraceRequest request) {
    long[] words = request.packedBlockIds();
    for (int i = 0; i < words.length; i += 2) {
      if (words[i] == 0) {
        words[i] = mix(words[i + 1]);
        words[i + 1] = mix(~words[i + 1]);
      }
    }
    return BlockIds.wrap(words);
  }

  /** A bijection of 64 bits that spreads them: the finalizer of SplitMix64 (Steele et al. 2014). */
  private static long mix(long value) {
    long z = value + 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  Totals totals() {
    return totals;
  }

  @Override
  public void close() {
    // First: until then it may still move what was under way, from and to the memory.
    store.close();
    memory.close();
  }
}
