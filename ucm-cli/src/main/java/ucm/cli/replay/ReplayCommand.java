package ucm.cli.replay;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.StoreMetrics;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.trace.TraceInputOptions;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

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

  private static final double GB = 1e9;

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private PluginsOption plugins = new PluginsOption();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--config",
      required = true,
      paramLabel = "FILE",
      description = "the YAML file that names the pipeline")
  private Path config = Path.of("");

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
    UcmConfig ucm = UcmConfig.read(config);
    EngineConfig.tellUnused(ucm, err());
    try (Cleanup cleanup = new Cleanup()) {
      EngineSpec engine = EngineConfig.spec("replay", 1, KvLayout.uniform(1, blockBytes));
      StoreMetrics scope = metrics.open(ucm, cleanup, err()).scope(engine.model(), "0");
      ConnectorSetup setup = ConnectorSetup.of(ucm, plugins.catalog(), engine).withMetrics(scope);
      Pipeline pipeline = cleanup.add(setup.openPipeline(0));
      TraceReplay replay =
          cleanup.add(
              new TraceReplay(
                  pipeline, layout, EngineConfig.taskTimeout(ucm), limit, scope, setup.settings()));
      long start = System.nanoTime();
      inputs.read("requests", err(), replay);
      FlushResult flushed = pipeline.flush(EngineConfig.taskTimeout(ucm));
      double seconds = (System.nanoTime() - start) / 1e9;
      report(pipeline, replay, flushed, seconds);
    }
  }

  private void report(Pipeline pipeline, TraceReplay replay, FlushResult flushed, double seconds) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("pipeline", pipeline.spec().toString());
    data.put("block_bytes", blockBytes);
    data.put("requests", replay.requests());
    data.put("blocks", replay.blocks());
    data.put("hit_blocks", replay.hitBlocks());
    data.put("hit_tokens", replay.hitTokens());
    data.put(
        "hit_rate", replay.blocks() == 0 ? 0.0 : (double) replay.hitBlocks() / replay.blocks());
    data.put("bytes_moved", pipeline.keepsBytes());
    data.put("loaded_bytes", replay.loadedBytes());
    data.put("load_seconds", replay.loadSeconds());
    data.put("dumped_bytes", replay.dumpedBytes());
    data.put("dump_seconds", replay.dumpSeconds());
    data.put("failed_blocks", flushed.failedCount());
    data.put("pending_blocks", flushed.pendingBlocks());
    data.put("seconds", seconds);
    PrintWriter out = out();
    if (json) {
      Json.print(out, data);
    } else {
      print(out, pipeline, replay, flushed, seconds);
    }
  }

  private void print(
      PrintWriter out, Pipeline pipeline, TraceReplay replay, FlushResult flushed, double seconds) {
    Table table = new Table("REPLAY", pipeline.spec().toString());
    table.row("requests", String.format(Locale.ROOT, "%,d in %.1f s", replay.requests(), seconds));
    table.row(
        "blocks",
        String.format(
            Locale.ROOT,
            "%,d; %,d hit (%.2f%%)",
            replay.blocks(),
            replay.hitBlocks(),
            replay.blocks() == 0 ? 0.0 : 100.0 * replay.hitBlocks() / replay.blocks()));
    if (pipeline.keepsBytes()) {
      table.row("loaded, every byte compared", moved(replay.loadedBytes(), replay.loadSeconds()));
      table.row("dumped", moved(replay.dumpedBytes(), replay.dumpSeconds()));
    } else {
      table.row("bytes", "none moved: this pipeline keeps metadata only");
      table.row(
          "look-up and load",
          String.format(Locale.ROOT, "%.3f s for all requests", replay.loadSeconds()));
    }
    table.row(
        "not stored",
        String.format(
            Locale.ROOT,
            "%,d blocks failed, %,d still pending",
            flushed.failedCount(),
            flushed.pendingBlocks()));
    if (flushed.cause() != null) {
      table.row("first reason", String.valueOf(flushed.cause().getMessage()));
    }
    table.print(out);
  }

  private static String moved(long bytes, double seconds) {
    return String.format(
        Locale.ROOT,
        "%.2f GB in %.2f s (%.2f GB/s)",
        bytes / GB,
        seconds,
        seconds == 0 ? 0.0 : bytes / GB / seconds);
  }
}
