package ucm.lite.curve;

import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import ucm.lite.curve.TraceAnalysis.Curves;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceException;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.platform.table.BlockTable;

/**
 * Computes cache statistics of a trace in one pass: totals, and the LRU hit curve for every capacity
 * in both touch orders, exact (stack distances; Mattson et al. 1970), sampled (SHARDS; Waldspurger
 * et al. 2015) or both. Hand it to {@code TraceReader.read} as the visitor, then call {@link
 * #finish()}.
 *
 * <p>Rules, the same for all caches: when a request arrives, the leading run of its blocks that are
 * present is the hit; then all its blocks are touched or inserted, in the {@link TouchOrder}.
 *
 * <p>Memory is bounded for traces of any size. Exact: at most {@value
 * AnalysisOptions#BYTES_A_BLOCK} bytes a distinct block, and O(log) time a reference. A trace with
 * more distinct blocks than the options allow is analysed from a sample that was taken all along,
 * and {@link TraceAnalysis#exact()} says so. Not for use by several threads.
 */
public final class TraceAnalyzer implements TraceVisitor {
  /** So many requests of a recording count as a block: what follows takes some 20 bytes for each. */
  private static final int REQUESTS_A_BLOCK = 6;

  private final AnalysisOptions options;
  private final ShardsSampler sampler;
  private @Nullable Exact exact;
  private long requests;
  private long inputTokens;
  private long outputTokens;
  private int blockTokens;
  private long blockReferences;
  private double firstTimestampMillis = Double.POSITIVE_INFINITY;
  private double lastTimestampMillis;

  public TraceAnalyzer() {
    this(AnalysisOptions.DEFAULT);
  }

  public TraceAnalyzer(AnalysisOptions options) {
    this.options = options;
    exact = options.exact() ? new Exact(options.recording()) : null;
    sampler = new ShardsSampler(options.sampling().orElse(AnalysisOptions.FALLBACK));
  }

  /**
   * Takes one request into all statistics; throws when its blocks have another size than those
   * before.
   */
  @Override
  public void request(TraceRequest request) {
    int count = request.blockCount();
    if (count > 0 && blockTokens > 0 && blockTokens != request.blockTokens()) {
      throw new IllegalArgumentException(
          String.format(
              "a request with %s tokens a block after ones with %s",
              request.blockTokens(), blockTokens));
    }
    blockTokens = count > 0 ? request.blockTokens() : blockTokens;
    requests++;
    inputTokens += request.inputTokens();
    outputTokens += request.outputTokens();
    blockReferences += count;
    firstTimestampMillis = Math.min(firstTimestampMillis, request.timestampMillis());
    lastTimestampMillis = Math.max(lastTimestampMillis, request.timestampMillis());
    Exact all = exact;
    if (all != null) {
      all.accept(request);
      long held = options.recording() ? requests / REQUESTS_A_BLOCK : 0;
      if (all.index.size() + held > options.maxUniqueBlocks()) {
        if (all.recorded != null) {
          all.recorded.close();
        }
        exact = null;
      }
    }
    sampler.accept(request);
  }

  /**
   * The statistics of the requests so far, which do not change any more. May be called again after
   * more requests.
   */
  public TraceAnalysis finish() {
    Exact all = exact;
    Curves sampled = curves(sampler::curve);
    if (all != null) {
      return new TraceAnalysis(
          summary(all.index.size(), all.idealHitBlocks, all.idealHitTokens),
          Optional.of(curves(order -> all.distances.curve(order, 1, 0, 0))),
          options.sampling().map(_ -> sampled));
    }
    // Roots touched last, as their distances are estimated without bias.
    CacheHits ideal = sampled.rootLast().at(LruCurve.UNBOUNDED);
    return new TraceAnalysis(
        summary(sampler.uniqueBlocks(), ideal.hitBlocks(), ideal.hitTokens()),
        Optional.empty(),
        Optional.of(sampled));
  }

  private static Curves curves(Function<TouchOrder, LruCurve> of) {
    return new Curves(of.apply(TouchOrder.LEAF_LAST), of.apply(TouchOrder.ROOT_LAST));
  }

  private TraceSummary summary(long uniqueBlocks, long idealHitBlocks, long idealHitTokens) {
    return new TraceSummary(
        requests,
        inputTokens,
        outputTokens,
        blockTokens,
        blockReferences,
        uniqueBlocks,
        idealHitBlocks,
        idealHitTokens,
        requests == 0 ? 0 : firstTimestampMillis,
        lastTimestampMillis);
  }

  /**
   * The trace so far, for simulations. The caller closes it when no more requests come. Throws a
   * {@link TraceException} when the trace has more distinct blocks than the options allow.
   */
  public RecordedTrace recorded() {
    if (!options.recording()) {
      throw new IllegalStateException("the analyzer was not asked to record the trace");
    }
    RecordedTrace recorded = exact == null ? null : exact.recorded;
    if (recorded == null) {
      throw new TraceException(
          String.format(
              "simulations keep each distinct block in memory, and the trace has "
                  + "more than %s of them: take a sample (--sample 0.1), a part of the "
                  + "trace, or a larger heap (UCM_JAVA_OPTS=-Xmx16g, for example)",
              options.maxUniqueBlocks()));
    }
    return recorded;
  }

  /**
   * The exact side of an analysis: numbers the blocks and feeds the models that need every one. All
   * of it is dropped at once when a trace has more distinct blocks than memory allows.
   */
  private static final class Exact {
    final BlockTable index = new BlockTable(1 << 10);
    final StackDistances distances = new StackDistances(/* exact= */ true);

    /** The trace so far; null when it is not recorded. */
    final @Nullable RecordedTrace recorded;

    long idealHitBlocks;
    long idealHitTokens;
    private final NumberedRequest cursor = new NumberedRequest();

    Exact(boolean recording) {
      recorded = recording ? new RecordedTrace(index) : null;
    }

    void accept(TraceRequest request) {
      int count = request.blockCount();
      cursor.begin(count, index.size());
      for (int i = 0; i < count; i++) {
        cursor.add(index.put(request.ids().high(i), request.ids().low(i)));
      }
      cursor.distinct = index.size();
      cursor.describe(request);
      idealHitBlocks += cursor.known;
      idealHitTokens += cursor.prefixTokens(cursor.known);
      distances.lookUp(cursor.blocks, cursor.known, 1, request::tokensOf);
      distances.touch(cursor.blocks, count, cursor.distinct);
      if (recorded != null) {
        recorded.add(cursor);
      }
      cursor.place++;
    }
  }
}
