package ucm.lite.curve;

import java.util.List;
import java.util.function.IntUnaryOperator;
import ucm.lite.record.TouchOrder;

/**
 * The LRU curves of both touch orders for every capacity in one pass, by stack distances (Mattson,
 * Gecsei, Slutz, Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 1970).
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
  private record Stack(DistanceHistogram hits, RecencyOrder recency) {}

  private final Stack leafLast;
  private final Stack rootLast;
  private final List<Stack> both;

  /** Counts hits at each distance, or in buckets. */
  StackDistances(boolean exact) {
    leafLast = new Stack(new DistanceHistogram(exact), new RecencyOrder());
    rootLast = new Stack(new DistanceHistogram(exact), new RecencyOrder());
    both = List.of(leafLast, rootLast);
  }

  /** Counts the hits of a request's first blocks, all of them known; says how many tokens each has. */
  void lookUp(int[] blocks, int known, double weight, IntUnaryOperator tokens) {
    for (Stack stack : both) {
      int oldest = Integer.MAX_VALUE;
      long distance = 0;
      for (int i = 0; i < known; i++) {
        int time = stack.recency.lastTime(blocks[i]);
        if (time < oldest) {
          oldest = time;
          distance = Math.max(1, Math.round(stack.recency.touchedSince(time) * weight));
        }
        stack.hits.add(distance, weight, weight * tokens.applyAsInt(i));
      }
    }
  }

  /** Touches a request's blocks, whose numbers are below {@code end}. */
  void touch(int[] blocks, int count, int end) {
    both.forEach(stack -> stack.recency.ensureBlocks(end));
    for (int i = 0; i < count; i++) {
      leafLast.recency.touch(blocks[i]);
      rootLast.recency.touch(blocks[count - 1 - i]);
    }
  }

  void forget(int block) {
    both.forEach(stack -> stack.recency.remove(block));
  }

  /** The curve of a touch order so far, with what is missing to all hits. */
  LruCurve curve(TouchOrder order, double sampleRate, double missingBlocks, double missingTokens) {
    Stack stack = order == TouchOrder.LEAF_LAST ? leafLast : rootLast;
    return LruCurve.of(order, sampleRate, stack.hits, missingBlocks, missingTokens);
  }
}
