package ucm.cli.replay;

import java.nio.file.Path;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockLayout;
import ucm.api.StoreMetrics;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.setup.PipelineProbe;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.statistics.StageLookups;

/** {@code ucm explain}: what became of each token of one request of a replay. */
@Command(
    name = "explain",
    description = {
      "Says what became of the tokens of one request: how many were asked for, in HBM, found"
          + " outside and in which stage, loaded and used, and why the others were missed.",
      "",
      "The requests of the trace before it are sent through the pipeline first, one after the"
          + " other, so that what is stored is what they left. With --config, the pipeline of that"
          + " file is used, in new folders within its storage_backends, which are removed at the"
          + " end, or, where it keeps blocks elsewhere, with ids of this run alone, whose blocks"
          + " are removed at the end; a store that cannot remove is refused. Without it, Fake,"
          + " which remembers blocks and moves no bytes. The bytes of a block are made from its id,"
          + " and every loaded byte is compared.",
      "hit_ratio, persist_token_threshold and load_tokens_threshold hold as in an engine; with"
          + " use_lite the pipeline is Fake."
    })
public final class ExplainCommand extends JsonCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--request",
      paramLabel = "N",
      required = true,
      description = "the request to explain: the first of the trace is 1")
  private long request;

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "the YAML file that names the pipeline (default: Fake)")
  private @Nullable Path config;

  @Option(
      names = "--hbm-blocks",
      paramLabel = "N",
      description =
          "room of the simulated engine's own prefix cache, in blocks (default: ${DEFAULT-VALUE})")
  private int hbmBlocks = 0;

  @Option(
      names = "--block-bytes",
      paramLabel = "BYTES",
      description = "size of a block in the store (default: ${DEFAULT-VALUE})")
  private long blockBytes = 16384;

  @Override
  public void run() {
    UsageException.atLeast("--request", request, 1);
    UsageException.atLeast("--hbm-blocks", hbmBlocks, 0);
    UsageException.within("--block-bytes", blockBytes, 1, 1 << 30);
    BlockLayout layout = BlockLayout.uniform(blockBytes, blockBytes, blockBytes);
    UcmConfig given = config == null ? UcmConfig.of("Fake", Map.of()) : UcmConfig.read(config);
    EngineConfig.tellUnused(given, err());
    StoreCatalog catalog = plugins.catalog();
    inputs.check();
    try (Cleanup cleanup = new Cleanup()) {
      boolean isLite = given.settings().useLite();
      boolean isApart = isLite || PipelineProbe.hasDirectories(given, catalog);
      // Keeps the operator's blocks apart from made-up ones of the same names.
      UnaryOperator<String> folder =
          directory -> cleanup.folder(Path.of(directory), "ucm-explain-").toString();
      UcmConfig ucm = isApart && !isLite ? given.withDirectories(folder, "explain") : given;
      EngineSpec engine = EngineConfig.spec("explain", 1, KvLayout.uniform(1, blockBytes));
      StageLookups lookups = new StageLookups(StoreMetrics.NONE, ucm.openedPipeline().stages());
      ConnectorSetup setup = ConnectorSetup.of(ucm, catalog, engine).withMetrics(lookups);
      Pipeline pipeline = cleanup.add(setup.openPipeline(0));
      UsageException.when(
          !isApart && !pipeline.canRemove(),
          String.format(
              "explain would leave its blocks in %s: it keeps them in no storage_backends that"
                  + " could be replaced, and a stage of it cannot remove blocks (its store has no"
                  + " Store.remove); name another pipeline",
              pipeline.spec()));
      ExplainedReplay replay =
          cleanup.add(
              new ExplainedReplay(
                  pipeline,
                  lookups,
                  layout,
                  EngineConfig.taskTimeout(ucm),
                  setup.settings(),
                  hbmBlocks,
                  request,
                  !isApart));
      inputs.read(replay);
      report(pipeline, replay);
    }
  }

  private void report(Pipeline pipeline, ExplainedReplay replay) {
    TraceRequest found = replay.request();
    if (found == null || replay.requests() < request) {
      throw new UsageException(
          "the trace has " + replay.requests() + " requests; --request asks for number " + request);
    }
    String id = StoreReplay.name(found, request);
    Fields data =
        new Fields()
            .with("request", request)
            .with("request_id", id)
            .with("pipeline", pipeline.spec().toString())
            .with("bytes_moved", pipeline.keepsBytes())
            .with("block_tokens", found.blockTokens())
            .with("blocks", found.blockCount());
    data.putAll(replay.funnel().data());
    print(
        () -> data.with("requests_not_stored", replay.refusedDumps()),
        () -> {
          say(
              "request %s (%s) after %s others through %s, blocks of %s tokens%s"
                  .formatted(
                      Figures.grouped(request),
                      id,
                      Figures.grouped(request - 1),
                      pipeline.spec(),
                      Figures.grouped(found.blockTokens()),
                      pipeline.keepsBytes() ? "" : "; no bytes are moved"));
          replay.funnel().table().print(out());
        });
  }
}
