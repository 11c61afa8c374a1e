package ucm.cli.lite;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.cli.output.UsageException;
import ucm.cli.replay.TraceReplay;
import ucm.cli.runtime.EngineConfig;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/**
 * Asks the scheduler side of an engine in lite mode about each request of a trace. Used by one thread.
 */
final class LiteRun implements TraceVisitor, AutoCloseable {

  private final UcmConfig config;
  private final StoreCatalog catalog;
  private final MetricsScopes metrics;
  private final TraceOptions folder;
  private final long limit;
  private final KnownBlocks blocks = new KnownBlocks();
  private @Nullable SchedulerConnector scheduler;
  private int blockTokens;
  private long requests;

  /**
   * Opens nothing before the first request, which says how long a block is.
   *
   * @param config with {@code use_lite}
   * @param folder where the status is written
   * @param limit requests after this many are left out
   */
  LiteRun(
      UcmConfig config,
      StoreCatalog catalog,
      MetricsScopes metrics,
      TraceOptions folder,
      long limit) {
    this.config = config;
    this.catalog = catalog;
    this.metrics = metrics;
    this.folder = folder;
    this.limit = limit;
  }

  @Override
  public void request(TraceRequest next) {
    if (requests == limit) {
      return;
    }
    SchedulerConnector engine = scheduler;
    if (engine == null) {
      engine = open(next.blockTokens());
      scheduler = engine;
    } else if (next.blockTokens() != blockTokens) {
      throw new UsageException(
          String.format(
              "the trace has blocks of %s tokens and of %s; an engine has one size: name it with"
                  + " --block-tokens, or run the parts one by one",
              blockTokens, next.blockTokens()));
    }
    requests++;
    String id = next.requestId().isEmpty() ? "trace-" + requests : next.requestId();
    int[] tokens = blocks.prompt(next);
    int _ = engine.matchedTokens(PromptRequest.of(id, tokens, next.outputTokens()), 0);
    engine.finished(id);
  }

  private SchedulerConnector open(int tokens) {
    if (tokens > BlockHasher.MAX_BLOCK_TOKENS) {
      throw new UsageException(
          "the trace has blocks of "
              + tokens
              + " tokens; those of an engine have at most "
              + BlockHasher.MAX_BLOCK_TOKENS);
    }
    blockTokens = tokens;
    return ConnectorSetup.of(
            config, catalog, EngineConfig.spec("trace", tokens, KvLayout.uniform(1, 1)))
        .withBlockHasher(blocks)
        .withMetricsScopes(metrics)
        .withTraces(folder)
        .scheduler();
  }

  long requests() {
    return requests;
  }

  @Override
  public void close() {
    if (scheduler != null) {
      scheduler.close();
    }
  }

  /** Names the blocks of the request under way as the trace does, which knows no tokens. */
  private static final class KnownBlocks implements BlockHasher {

    private BlockIds ids = BlockIds.empty();

    /** As many tokens as the request has; which ones they are does not matter. */
    int[] prompt(TraceRequest request) {
      ids = TraceReplay.storeIds(request);
      return new int[request.inputTokens()];
    }

    @Override
    public BlockIds seed() {
      return BlockIds.of(0, 0);
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
