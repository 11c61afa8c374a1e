package ucm.lite;

import java.util.List;

/**
 * Computes exact cache statistics of a trace in one pass: totals, the LRU curve for every capacity
 * (Mattson et al. 1970) in both touch orders, and FIFO at chosen capacities. Hand it to {@link
 * TraceReader#read} as the visitor, then call {@link #finish()}.
 *
 * <p>Rules, the same for all caches: when a request arrives, the leading run of its blocks that are
 * present is the hit; then all its blocks are touched or inserted, in the {@link TouchOrder}.
 *
 * <p>Time is O(log unique blocks) a reference, memory O(unique blocks): about 65 to 130 bytes a
 * block, and for each FIFO capacity 4 to 8 a block held. Not for use by several threads.
 */
public final class TraceAnalyzer implements TraceVisitor {
  private final BlockIndex index = new BlockIndex();
  private final StackDistances leafLast = new StackDistances(TouchOrder.LEAF_LAST);
  private final StackDistances rootLast = new StackDistances(TouchOrder.ROOT_LAST);
  private final FifoSimulation fifo;
  private int[] blocks = new int[256];
  private long requests;
  private long inputTokens;
  private long outputTokens;
  private int blockTokens;
  private long blockReferences;
  private long idealHitBlocks;
  private long idealHitTokens;
  private double firstTimestampMillis = Double.POSITIVE_INFINITY;
  private double lastTimestampMillis;

  /**
   * Creates an analyzer.
   *
   * @param fifoCapacities capacities, in blocks, at which FIFO is simulated; may be none
   * @throws IllegalArgumentException when a capacity is negative
   */
  public TraceAnalyzer(long... fifoCapacities) {
    for (long capacity : fifoCapacities) {
      if (capacity < 0) {
        throw new IllegalArgumentException("FIFO capacity " + capacity + " is negative");
      }
    }
    fifo = new FifoSimulation(TouchOrder.LEAF_LAST, fifoCapacities);
  }

  /**
   * Takes one request into all statistics.
   *
   * @param request the next request of the trace
   * @throws IllegalArgumentException when its blocks have another size than those before
   */
  @Override
  public void request(TraceRequest request) {
    int count = request.blockCount();
    if (count > 0) {
      checkBlockTokens(request.blockTokens());
    }
    int known = number(request, count);
    requests++;
    inputTokens += request.inputTokens();
    outputTokens += request.outputTokens();
    blockReferences += count;
    idealHitBlocks += known;
    idealHitTokens += request.prefixTokens(known);
    firstTimestampMillis = Math.min(firstTimestampMillis, request.timestampMillis());
    lastTimestampMillis = Math.max(lastTimestampMillis, request.timestampMillis());
    int distinct = index.size();
    leafLast.accept(request, blocks, count, known, distinct);
    rootLast.accept(request, blocks, count, known, distinct);
    fifo.accept(request, blocks, count, known, distinct);
  }

  private void checkBlockTokens(int tokens) {
    if (blockTokens == 0) {
      blockTokens = tokens;
    } else if (blockTokens != tokens) {
      throw new IllegalArgumentException(
          "a request with " + tokens + " tokens a block after ones with " + blockTokens);
    }
  }

  /** Numbers the blocks; returns how many leading ones occurred in an earlier request. */
  private int number(TraceRequest request, int count) {
    if (count > blocks.length) {
      blocks = new int[Math.max(count, 2 * blocks.length)];
    }
    int before = index.size();
    int known = 0;
    for (int i = 0; i < count; i++) {
      int block = index.number(request.blockIdHigh(i), request.blockIdLow(i));
      blocks[i] = block;
      if (block < before && known == i) {
        known++;
      }
    }
    return known;
  }

  /**
   * Returns the statistics of the requests so far. May be called again after more requests.
   *
   * @return a snapshot that does not change any more
   */
  public TraceAnalysis finish() {
    TraceSummary summary =
        new TraceSummary(
            requests,
            inputTokens,
            outputTokens,
            blockTokens,
            blockReferences,
            index.size(),
            idealHitBlocks,
            idealHitTokens,
            requests == 0 ? 0 : firstTimestampMillis,
            lastTimestampMillis);
    return new TraceAnalysis(summary, leafLast.curve(), rootLast.curve(), List.of(fifo.results()));
  }
}
