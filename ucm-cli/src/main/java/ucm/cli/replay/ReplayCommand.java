package ucm.cli.replay;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.replay.PrefixClient.Served;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PipelineOptions;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.HitPolicy;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.statistics.StageLookups;

/** {@code ucm trace replay}: sends the requests of a trace through a real pipeline. */
@Command(
    name = "replay",
    description = {
      "Sends the requests of a trace through a real pipeline, one after the other, as fast as they"
          + " go.",
      "hit_ratio, persist_token_threshold and load_tokens_threshold hold as in an engine; with"
          + " use_lite the pipeline is Fake.",
      "",
      "Each request looks up its prefix, loads what is there and dumps the rest. The bytes of a"
          + " block are made from its id, and every loaded byte is compared. A pipeline that keeps"
          + " metadata only (Fake) moves no bytes; its hits are counted all the same."
    })
public final class ReplayCommand extends JsonCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private PipelineOptions pipelines = new PipelineOptions();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--block-bytes",
      paramLabel = "BYTES",
      description = "size of a block in the store (default: ${DEFAULT-VALUE})")
  private long blockBytes = 16384;

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "stop after this many requests (default: all)")
  private long limit = Long.MAX_VALUE;

  @Override
  public void run() throws InterruptedException {
    UsageException.within("--block-bytes", blockBytes, 1, 1 << 30);
    UsageException.atLeast("--requests", limit, 1);
    BlockLayout layout = BlockLayout.uniform(blockBytes, blockBytes, blockBytes);
    UcmConfig ucm = pipelines.read();
    Duration timeout = EngineConfig.taskTimeout(ucm);
    EngineConfig.tellUnused(ucm, err());
    inputs.check();
    try (Cleanup cleanup = new Cleanup()) {
      EngineSpec engine = EngineConfig.spec("replay", 1, KvLayout.uniform(1, blockBytes));
      StoreMetrics scope = metrics.open(ucm, cleanup, err()).scope(engine.model(), "0");
      StageLookups lookups = new StageLookups(scope, ucm.openedPipeline().stages());
      ConnectorSetup setup =
          ConnectorSetup.of(ucm, pipelines.catalog(), engine).withMetrics(lookups);
      Pipeline pipeline = cleanup.add(setup.openPipeline(0));
      TraceReplay replay =
          cleanup.add(new TraceReplay(pipeline, layout, timeout, limit, scope, setup.settings()));
      long start = System.nanoTime();
      inputs.read(replay);
      FlushResult flushed = pipeline.flush(timeout);
      double seconds = (System.nanoTime() - start) / 1e9;
      Replayed replayed = new Replayed(pipeline, replay, lookups, flushed, seconds);
      print(() -> data(replayed), () -> table(replayed).print(out()));
    }
  }

  private record Replayed(
      Pipeline pipeline,
      TraceReplay replay,
      StageLookups lookups,
      FlushResult flushed,
      double seconds) {

    /** Blocks that look-ups found, by the stage that had them. */
    Map<String, Long> found() {
      Map<String, Long> found = new LinkedHashMap<>();
      for (int i = 0; i < lookups.stages().size(); i++) {
        found.put(lookups.stages().get(i), lookups.hits(i));
      }
      return found;
    }
  }

  /** Bytes of some blocks, where any were moved. */
  private long bytes(Replayed replayed, long blocks) {
    return replayed.pipeline.keepsBytes() ? blocks * blockBytes : 0;
  }

  private Fields data(Replayed replayed) {
    TraceReplay replay = replayed.replay;
    Served served = replay.served();
    return new Fields()
        .with("pipeline", replayed.pipeline.spec().toString())
        .with("block_bytes", blockBytes)
        .with("requests", replay.requests())
        .with("blocks", served.blocks())
        .with("hit_blocks", served.hits())
        .with("hit_tokens", replay.hitTokens())
        .with("hit_rate", served.hitRate())
        .with("found_blocks", replayed.found())
        .with("bytes_moved", replayed.pipeline.keepsBytes())
        .with("loaded_bytes", bytes(replayed, served.hits()))
        .with("load_seconds", served.loadNanos() / 1e9)
        .with("dumped_bytes", bytes(replayed, served.dumped()))
        .with("dump_seconds", served.dumpNanos() / 1e9)
        .with("failed_blocks", replayed.flushed.failedCount())
        .with("pending_blocks", replayed.flushed.pendingBlocks())
        .with("seconds", replayed.seconds);
  }

  private Table table(Replayed replayed) {
    TraceReplay replay = replayed.replay;
    Served served = replay.served();
    FlushResult flushed = replayed.flushed;
    Table table = new Table("REPLAY", replayed.pipeline.spec().toString());
    table.row(
        "requests",
        Figures.grouped(replay.requests()) + " in " + Figures.fixed(replayed.seconds, 1) + " s");
    table.row(
        "blocks",
        "%s; %s hit (%s)"
            .formatted(
                Figures.grouped(served.blocks()),
                Figures.grouped(served.hits()),
                Figures.percent(served.hitRate())));
    if (replayed.found().size() > 1) {
      replayed
          .found()
          .forEach((stage, blocks) -> table.row("  found in " + stage, Figures.grouped(blocks)));
    }
    if (replayed.pipeline.keepsBytes()) {
      String loaded = moved(bytes(replayed, served.hits()), served.loadNanos());
      table.row("loaded, every byte compared", loaded);
      table.row("dumped", moved(bytes(replayed, served.dumped()), served.dumpNanos()));
    } else {
      table.row("bytes", "none moved: this pipeline keeps metadata only");
      String seconds = Figures.fixed(served.loadNanos() / 1e9, 3);
      table.row("look-up and load", seconds + " s for all requests");
    }
    table.row(
        "not stored",
        "%s blocks failed, %s still pending"
            .formatted(
                Figures.grouped(flushed.failedCount()), Figures.grouped(flushed.pendingBlocks())));
    if (flushed.cause() != null) {
      table.row("first reason", String.valueOf(flushed.cause().getMessage()));
    }
    return table;
  }

  private static String moved(long bytes, long nanos) {
    return "%s GB in %s s (%s GB/s)"
        .formatted(
            Figures.plain(bytes / Figures.GB),
            Figures.plain(nanos / 1e9),
            Figures.plain(nanos == 0 ? 0.0 : (double) bytes / nanos));
  }

  /** Counts what comes of the requests of a trace, also in metrics, as a connector does. */
  static final class TraceReplay extends StoreReplay {

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
      this.askedTokens =
          metrics.counter("total_prefix_query_tokens", "Tokens of prompts asked for.");
      this.hitTokens = metrics.counter("ucm_hit_tokens", "Tokens of those found outside.");
      this.hitRates =
          metrics.histogram(
              "interval_lookup_hit_rates", "Share of a prompt's blocks that was found outside.");
    }

    @Override
    void serve(TraceRequest request, HitPolicy policy) throws InterruptedException {
      BlockIds ids = storeIds(request);
      makeRoom(ids.size());
      PrefixClient client = new PrefixClient(store, memory, policy, timeout);
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
}
