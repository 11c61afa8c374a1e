package ucm.lite.curve;

import java.util.Arrays;
import java.util.function.Consumer;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.TouchOrder;

/**
 * The exact LRU curve for every capacity in one pass, by stack distances (Mattson, Gecsei, Slutz,
 * Traiger: Evaluation techniques for storage hierarchies, IBM Systems Journal 1970).
 *
 * <p>An LRU cache of C blocks holds the C blocks touched last. So a block is in it iff at most C
 * distinct blocks, itself included, were touched since its own last touch: its distance. And it is
 * a hit iff that holds for every block before it in the request too: the largest distance along the
 * prefix counts. That one belongs to the block with the oldest touch so far, hence a distance is
 * asked for only where the touch times reach a new minimum. All look-ups of a request come before
 * its touches, so blocks that occur twice in it need no special case.
 */
final class StackDistances implements Consumer<NumberedRequest> {
  private final TouchOrder order;
  private final RecencyOrder recency = new RecencyOrder();

  /** At index d: blocks, and their tokens, that hit from capacity d on. */
  private long[] blocksAt = new long[64];

  private long[] tokensAt = new long[64];

  StackDistances(TouchOrder order) {
    this.order = order;
  }

  @Override
  public void accept(NumberedRequest request) {
    int distinct = request.distinct;
    recency.ensureBlocks(distinct);
    if (distinct >= blocksAt.length) {
      int length = (int) Math.min(Integer.MAX_VALUE - 8, 2L * distinct);
      blocksAt = Arrays.copyOf(blocksAt, length);
      tokensAt = Arrays.copyOf(tokensAt, length);
    }
    lookUp(request, request.blocks, request.known);
    for (int i = 0; i < request.count; i++) {
      recency.touch(request.touched(order, i));
    }
  }

  private void lookUp(NumberedRequest request, int[] blocks, int known) {
    int oldest = Integer.MAX_VALUE;
    int distance = 0;
    int runStart = 0;
    for (int i = 0; i < known; i++) {
      int time = recency.lastTime(blocks[i]);
      if (time < oldest) {
        count(request, distance, runStart, i);
        runStart = i;
        oldest = time;
        distance = recency.touchedSince(time);
      }
    }
    count(request, distance, runStart, known);
  }

  /** Counts the blocks {@code from} (inclusive) to {@code to} (exclusive) of the prefix. */
  private void count(NumberedRequest request, int distance, int from, int to) {
    blocksAt[distance] += to - from;
    tokensAt[distance] += request.prefixTokens(to) - request.prefixTokens(from);
  }

  LruCurve curve() {
    return LruCurve.of(order, blocksAt, tokensAt);
  }
}
