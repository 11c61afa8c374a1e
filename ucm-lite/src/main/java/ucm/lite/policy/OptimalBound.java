package ucm.lite.policy;

import java.util.Arrays;
import java.util.function.Consumer;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.BlockNumbers;
import ucm.lite.record.NumberedRequest;

/**
 * Belady's optimum (A study of replacement algorithms for a virtual-storage computer, IBM Systems
 * Journal 1966) at the granularity of requests, as the bound for every policy of this capacity.
 *
 * <p>Between two requests that share a block, keeping it takes one place and gives one hit. So the
 * most hits are the most such intervals of which no more than the capacity overlap anywhere, and
 * giving up those that end last finds them. Counted are blocks that are inside when asked for and
 * that an unbounded cache would hit, whether or not the blocks before them are inside; that is at
 * least what any policy gets under the rule of the unbroken run. With prefix hashes it is exactly
 * what a clairvoyant policy gets: a cache that has a block has its prefix, so no interval of a prefix
 * ends later than that of its continuation, and of those that end together the deepest goes first.
 */
final class OptimalBound implements Consumer<NumberedRequest> {
  private static final int DEPTH_BITS = 22;

  private final NextUses nextUses;
  private final long capacity;

  /** For each block inside, the request it is kept for; otherwise {@link NextUses#NEVER}. */
  private final int[] keptFor;

  private final int[] seenIn;
  private int[] uses = new int[256];

  /** What is inside as a binary heap, largest first: the request it is kept for and its depth. */
  private long[] keys = new long[64];

  private int[] blocks = new int[64];
  private int heapSize;
  private int held;
  private long hitBlocks;
  private long idealTokens;
  private int blockTokens;

  OptimalBound(NextUses nextUses, long capacity, int uniqueBlocks) {
    this.nextUses = nextUses;
    this.capacity = capacity;
    keptFor = BlockNumbers.table(uniqueBlocks);
    seenIn = BlockNumbers.table(uniqueBlocks);
  }

  @Override
  public void accept(NumberedRequest request) {
    if (request.count > uses.length) {
      uses = new int[2 * request.count];
    }
    nextUses.read(request, uses);
    int now = request.number;
    for (int i = 0; i < request.known; i++) {
      int block = request.blocks[i];
      // A block that is twice in one request: the second time may hit without a place of its own.
      hitBlocks += keptFor[block] == now || seenIn[block] == now ? 1 : 0;
      seenIn[block] = now;
    }
    idealTokens += request.prefixTokens(request.known);
    blockTokens = request.count > 0 ? request.blockTokens : blockTokens;
    for (int i = 0; i < request.count; i++) {
      keep(request.blocks[i], uses[i], i);
    }
    while (held > capacity) {
      giveUpLast();
    }
    if (heapSize > 2L * held + 64) {
      dropPast();
    }
  }

  private void keep(int block, int until, int depth) {
    int before = keptFor[block];
    if (before == until) {
      return;
    }
    keptFor[block] = until;
    if (until == NextUses.NEVER) {
      held--;
      return;
    }
    held += before == NextUses.NEVER ? 1 : 0;
    if (heapSize == keys.length) {
      keys = Arrays.copyOf(keys, 2 * heapSize);
      blocks = Arrays.copyOf(blocks, 2 * heapSize);
    }
    up(heapSize++, (long) until << DEPTH_BITS | depth, block);
  }

  /** What was kept for requests that are past stays in the heap, but below all others. */
  private void giveUpLast() {
    keptFor[blocks[0]] = NextUses.NEVER;
    held--;
    heapSize--;
    down(0, keys[heapSize], blocks[heapSize]);
  }

  private void dropPast() {
    int all = heapSize;
    heapSize = 0;
    for (int i = 0; i < all; i++) {
      if (keptFor[blocks[i]] == (int) (keys[i] >>> DEPTH_BITS)) {
        up(heapSize++, keys[i], blocks[i]);
      }
    }
  }

  private void up(int from, long key, int block) {
    int at = from;
    for (; at > 0 && keys[(at - 1) / 2] < key; at = (at - 1) / 2) {
      keys[at] = keys[(at - 1) / 2];
      blocks[at] = blocks[(at - 1) / 2];
    }
    keys[at] = key;
    blocks[at] = block;
  }

  private void down(int from, long key, int block) {
    int at = from;
    for (int child = 2 * at + 1; child < heapSize; child = 2 * at + 1) {
      if (child + 1 < heapSize && keys[child + 1] > keys[child]) {
        child++;
      }
      if (keys[child] <= key) {
        break;
      }
      keys[at] = keys[child];
      blocks[at] = blocks[child];
      at = child;
    }
    keys[at] = key;
    blocks[at] = block;
  }

  CacheHits hits() {
    return new CacheHits(capacity, hitBlocks, Math.min(hitBlocks * blockTokens, idealTokens));
  }
}
