package ucm.lite;

import java.util.List;

/**
 * The result of a {@link TraceAnalyzer}. All numbers are exact.
 *
 * @param summary totals
 * @param leafLast LRU hits, blocks of a request touched first to last
 * @param rootLast LRU hits, blocks of a request touched last to first
 * @param fifo FIFO hits at the capacities asked for, in that order, blocks touched first to last
 */
public record TraceAnalysis(
    TraceSummary summary, LruCurve leafLast, LruCurve rootLast, List<CacheHits> fifo) {

  /** Copies the list. */
  public TraceAnalysis {
    fifo = List.copyOf(fifo);
  }

  /**
   * Returns the LRU curve of a touch order.
   *
   * @param order the order
   * @return the curve
   */
  public LruCurve lru(TouchOrder order) {
    return switch (order) {
      case LEAF_LAST -> leafLast;
      case ROOT_LAST -> rootLast;
    };
  }
}
