package ucm.cli.lite;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;
import ucm.api.BlockIds;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.replay.StoreReplay;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PipelineOptions;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/** {@code ucm lite run}: what an engine in lite mode would have logged for a trace. */
@Command(
    name = "run",
    description = {
      "Asks the connector in lite mode about each request of a trace: the log is that of an engine"
          + " with use_lite: true that got these requests one after the other with nothing on the"
          + " device, and then comes what lite status would say of it.",
      "use_lite counts as true whatever the file says; nothing of its pipeline is opened unless"
          + " that is Fake, and no trace is written."
    })
final class LiteRunCommand extends JsonCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private PipelineOptions pipeline = new PipelineOptions();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "stop after this many requests (default: all)")
  private long limit = Long.MAX_VALUE;

  private final KnownBlocks blocks = new KnownBlocks();
  private @Nullable SchedulerConnector scheduler;
  private int blockTokens;
  private long requests;

  @Override
  public void run() {
    UsageException.atLeast("--requests", limit, 1);
    UcmConfig lite =
        pipeline
            .read()
            .withTopLevel(Map.of("use_lite", true, "enable_record_traces", false), "lite run");
    PrintWriter err = err();
    LogSetup.keepAllLines();
    try (Cleanup cleanup = new Cleanup()) {
      Path folder = cleanup.folder(Path.of(System.getProperty("java.io.tmpdir")), "ucm-lite-run-");
      MetricsScopes scopes = metrics.open(lite, cleanup, err);
      IntFunction<SchedulerConnector> engines =
          tokens ->
              cleanup.add(
                  ConnectorSetup.of(
                          lite,
                          pipeline.catalog(),
                          EngineConfig.spec("trace", tokens, KvLayout.uniform(1, 1)))
                      .withBlockHasher(blocks)
                      .withMetricsScopes(scopes)
                      .withTraces(new TraceOptions(folder, 1, 1))
                      .scheduler());
      inputs.read(next -> ask(next, engines));
      if (scheduler == null) {
        throw new UsageException("the trace has no request");
      }
      scheduler.close();
      ObjectNode engine = LiteStatusCommand.read(LiteStatusCommand.files(folder).getFirst());
      print(() -> List.of(engine), () -> LiteStatusCommand.print(out(), engine));
    }
  }

  /**
   * Asks the scheduler side of an engine, made at the first request, which says how long a block
   * is.
   */
  private void ask(TraceRequest next, IntFunction<SchedulerConnector> engines) {
    if (requests == limit) {
      return;
    }
    int tokens = next.blockTokens();
    SchedulerConnector engine = scheduler;
    if (engine == null) {
      UsageException.when(
          tokens > BlockHasher.MAX_BLOCK_TOKENS,
          "the trace has blocks of %s tokens; those of an engine have at most %s"
              .formatted(tokens, BlockHasher.MAX_BLOCK_TOKENS));
      engine = engines.apply(tokens);
      scheduler = engine;
      blockTokens = tokens;
    }
    UsageException.when(
        tokens != blockTokens,
        String.format(
            "the trace has blocks of %s tokens and of %s; an engine has one size: name it with"
                + " --block-tokens, or run the parts one by one",
            blockTokens, tokens));
    requests++;
    String id = StoreReplay.name(next, requests);
    int[] prompt = blocks.prompt(next);
    var _ = engine.matchedTokens(PromptRequest.of(id, prompt, next.outputTokens()), 0);
    engine.finished(id);
  }

  /** Names the blocks of the request under way as the trace does, which knows no tokens. */
  private static final class KnownBlocks implements BlockHasher {

    private BlockIds ids = BlockIds.empty();

    /** As many tokens as the request has; which ones they are does not matter. */
    int[] prompt(TraceRequest request) {
      ids = StoreReplay.storeIds(request, 0);
      return new int[request.inputTokens()];
    }

    @Override
    public BlockHasher forVariant(PromptVariant variant) {
      return this;
    }

    @Override
    public BlockIds hash(int[] tokens, int from, int to, int blockSize, @Nullable BlockIds parent) {
      int end = Math.min(ids.size(), to / blockSize);
      return ids.slice(Math.min(end, from / blockSize), end);
    }

    @Override
    public BlockIds ofRank(int rank, BlockIds rankZeroIds) {
      return rankZeroIds;
    }
  }
}
