package ucm.lite.policy;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.function.Consumer;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.IntTape;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;

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
 * ends later than that of its continuation, and of those that end together the deepest, which has the
 * largest number, goes first.
 */
final class OptimalBound implements Consumer<NumberedRequest> {
  private static final int NEVER = -1;

  private final IntTape nextUses;
  private final long capacity;

  /** For each block inside, the request it is kept for; otherwise {@link #NEVER}. */
  private final int[] keptFor;

  private final int[] seenIn;
  private int[] uses = new int[256];

  /**
   * What is inside, largest first: the request it is kept for in the upper half, the block in the lower.
   * What was kept for requests that are past stays, but below all others.
   */
  private final PriorityQueue<Long> kept = new PriorityQueue<>(Comparator.reverseOrder());

  private int held;
  private long hitBlocks;
  private long idealTokens;
  private int blockTokens;

  /** A bound for a capacity, by the {@link #nextUses} of the trace. */
  OptimalBound(IntTape nextUses, long capacity, int uniqueBlocks) {
    this.nextUses = nextUses;
    this.capacity = capacity;
    keptFor = RecordedTrace.table(uniqueBlocks);
    seenIn = RecordedTrace.table(uniqueBlocks);
  }

  /**
   * For each reference of a trace, the request in which its block is useful next: the next one that
   * has it, if it is there among the blocks that an unbounded cache would hit. Found by one walk
   * backwards; 4 bytes a reference, kept like the trace itself. The caller closes it.
   */
  static IntTape nextUses(RecordedTrace trace) {
    IntTape tape = new IntTape(RecordedTrace.HEAP_REFERENCES);
    tape.extend(trace.references());
    int[] next = RecordedTrace.table(trace.uniqueBlocks());
    NumberedRequest cursor = new NumberedRequest();
    int[] uses = new int[256];
    for (int r = trace.requests() - 1; r >= 0; r--) {
      trace.read(r, cursor);
      if (cursor.count > uses.length) {
        uses = new int[2 * cursor.count];
      }
      for (int i = 0; i < cursor.count; i++) {
        uses[i] = next[cursor.blocks[i]];
      }
      tape.write(cursor.start, uses, cursor.count);
      for (int i = cursor.count - 1; i >= 0; i--) {
        next[cursor.blocks[i]] = i < cursor.known ? r : NEVER;
      }
    }
    return tape;
  }

  @Override
  public void accept(NumberedRequest request) {
    if (request.count > uses.length) {
      uses = new int[2 * request.count];
    }
    nextUses.read(request.start, uses, request.count);
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
      keep(request.blocks[i], uses[i]);
    }
    for (; held > capacity; held--) {
      keptFor[kept.remove().intValue()] = NEVER;
    }
    if (kept.size() > 2L * held + 64) {
      kept.removeIf(key -> keptFor[key.intValue()] != key >>> Integer.SIZE);
    }
  }

  private void keep(int block, int until) {
    int before = keptFor[block];
    if (before == until) {
      return;
    }
    keptFor[block] = until;
    held += (until == NEVER ? 0 : 1) - (before == NEVER ? 0 : 1);
    if (until != NEVER) {
      kept.add((long) until << Integer.SIZE | block);
    }
  }

  CacheHits hits() {
    return new CacheHits(capacity, hitBlocks, Math.min(hitBlocks * blockTokens, idealTokens));
  }
}
