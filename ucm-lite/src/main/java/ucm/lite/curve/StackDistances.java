package ucm.lite.curve;

import java.util.function.IntUnaryOperator;
import ucm.lite.record.TouchOrder;

/**
 * The LRU curve for every capacity in one pass, by stack distances (Mattson, Gecsei, Slutz,
 * Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 1970).
 *
 * <p>An LRU cache of C blocks holds the C blocks touched last. So a block is in it iff at most C
 * distinct blocks, itself included, were touched since its own last touch: its distance. And it is
 * a hit iff that holds for every block before it in the request too: the largest distance along the
 * prefix counts. That one belongs to the block with the oldest touch so far, hence a distance is
 * asked for only where the touch times reach a new minimum. All look-ups of a request come before
 * its touches, so blocks that occur twice in it need no special case.
 *
 * <p>Of a sample of the blocks each stands for several, its weight, and so does its distance.
 */
final class StackDistances {
  private final TouchOrder order;
  private final DistanceHistogram hits;
  private final RecencyOrder recency = new RecencyOrder();

  StackDistances(TouchOrder order, DistanceHistogram hits) {
    this.order = order;
    this.hits = hits;
  }

  /** Counts the hits of a request's first blocks, all of them known; says how many tokens each has. */
  void lookUp(int[] blocks, int known, double weight, IntUnaryOperator tokens) {
    int oldest = Integer.MAX_VALUE;
    long distance = 0;
    for (int i = 0; i < known; i++) {
      int time = recency.lastTime(blocks[i]);
      if (time < oldest) {
        oldest = time;
        distance = Math.max(1, Math.round(recency.touchedSince(time) * weight));
      }
      hits.add(distance, weight, weight * tokens.applyAsInt(i));
    }
  }

  /** Touches a request's blocks, whose numbers are below {@code end}. */
  void touch(int[] blocks, int count, int end) {
    recency.ensureBlocks(end);
    for (int i = 0; i < count; i++) {
      recency.touch(blocks[order == TouchOrder.LEAF_LAST ? i : count - 1 - i]);
    }
  }

  void forget(int block) {
    recency.remove(block);
  }

  /** The curve so far, with what is missing to all hits. */
  LruCurve curve(double sampleRate, double missingBlocks, double missingTokens) {
    return LruCurve.of(order, sampleRate, hits, missingBlocks, missingTokens);
  }
}
