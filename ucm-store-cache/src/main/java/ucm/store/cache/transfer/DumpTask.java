package ucm.store.cache.transfer;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.IndexLookup;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Transfer;

/**
 * A dump. Blocks that are in the next stage, and shards that a dump has brought here on their way there, need
 * no move; the other shards take a slot each, are copied into it by the copy threads, and end for the
 * engine. From then on the slots are a hit, and are written to the next stage in the background.
 *
 * <p>That shards are here does not say that the next stage has them: they may have been loaded, or written,
 * before it lost the block. So it decides, block by block.
 *
 * <p>For the engine the dump ends when the bytes have left its memory. For {@code flush} it is
 * <em>settled</em> when the next stage is done with each shard, or the shard failed or needed no move.
 */
final class DumpTask extends CacheTask {

  private static final Logger LOG = LoggerFactory.getLogger(DumpTask.class);

  // A look-up wakes a thread or two, which takes as long as some more system calls do.
  private static final int LEAST_ASKED = 16;

  // Guarded by itself.
  private final BitSet unsettled;
  private boolean isSettled;
  private boolean isHurried;

  // Its blocks by their first shards, one after the other. One whose shards do not follow each
  // other counts as several, which costs a look-up more each and nothing else.
  private final int[] starts;
  private final int blockCount;

  /** How many shards the next group that is written together may have; for the planning thread. */
  long groupShards;

  // How many blocks the next stage was asked for, or need not be; for the planning thread.
  private int asked;
  private boolean isAnswering = true;

  DumpTask(CacheRuntime cache, long id, Transfer transfer) {
    super(cache, id, transfer, true);
    this.starts = blockStarts(transfer.ids());
    this.blockCount = starts.length - 1;
    this.unsettled = new BitSet(shardCount);
    unsettled.set(0, shardCount);
  }

  /** Where the shards of another block begin, in their order, and the end. */
  private static int[] blockStarts(BlockIds ids) {
    int[] starts = new int[ids.size() + 1];
    int count = 0;
    for (int shard = 1; shard < ids.size(); shard++) {
      if (!isSameBlock(ids, shard, shard - 1)) {
        starts[++count] = shard;
      }
    }
    starts[ids.isEmpty() ? 0 : ++count] = ids.size();
    return Arrays.copyOf(starts, count + 1);
  }

  /** Whether two shards are of one block. */
  static boolean isSameBlock(BlockIds ids, int shard, int other) {
    return ids.high(shard) == ids.high(other) && ids.low(shard) == ids.low(other);
  }

  /**
   * Whether the next stage must be asked which of the blocks it has, as it does not say what it knows of
   * them by itself; then nothing is planned before. To be called once, and does not block.
   */
  boolean mustAsk() {
    Store next = cache.next;
    BitSet unknown = next == null ? new BitSet() : unknown(0, blockCount);
    if (next == null || unknown.isEmpty()) {
      return false;
    }
    todo.clear();
    BlockIds ids = idsOf(unknown);
    BitSet known = known(next, ids);
    if (known == null) {
      return true;
    }
    sift(present(unknown, ids, known), 0, blockCount);
    return false;
  }

  /**
   * Has the next stage say which blocks it knows. Those of which it knows nothing are moved, although
   * another process may have stored them meanwhile: the next stage finds out when it writes them, in the
   * background.
   *
   * @param ids of the blocks of which it is not known whether the next stage has them
   * @return null when it must be asked after all: it knows nothing by itself, or not of a block that
   *     is here with all its shards, which is not moved for nothing
   */
  private @Nullable BitSet known(Store next, BlockIds ids) {
    BitSet known;
    try {
      known = next instanceof IndexLookup index ? index.lookupKnown(ids) : null;
    } catch (RuntimeException e) {
      LOG.warn("{} did not say which blocks it knows, and is asked: {}", next, e.toString());
      return null;
    }
    for (int i = 0; known != null && i < ids.size(); i++) {
      if (!known.get(i) && cache.pool.isComplete(ids, i)) {
        return null;
      }
    }
    return known;
  }

  /** Whether there are blocks that the next stage has not been asked for. */
  boolean hasMoreToAsk() {
    return asked < blockCount;
  }

  /**
   * Asks the next stage for some blocks more: first for a few, so that copying begins soon, then for as
   * many each time as before altogether, while those are copied. Ends the shards of those that
   * it has, and has the pool forget what it holds of the others, as these must go there with all their
   * shards: they are to be planned next. May block.
   */
  void askMore(Store next) {
    long blockBytes = transfer.byteSize() / blockCount;
    long first = Math.max(LEAST_ASKED, Math.ceilDiv(Copy.GROUP_BYTES, blockBytes));
    int to = (int) Math.min(blockCount, Math.max(first, 2L * asked));
    sift(ask(next, asked, to), asked, to);
    asked = to;
  }

  /** Ends the shards of those of some blocks that are present; the others are to be planned. */
  private void sift(BitSet present, int from, int to) {
    BitSet there = new BitSet();
    for (int block = from; block < to; block++) {
      for (int shard = starts[block]; shard < starts[block + 1]; shard++) {
        BitSet chosen = present.get(block) && !hasBegun(shard) ? there : todo;
        chosen.set(shard);
      }
    }
    goOn(members(there));
  }

  /** Asks for those of some blocks of which it is not known; returns which the next stage has. */
  private BitSet ask(Store next, int from, int to) {
    BitSet unknown = isAnswering ? unknown(from, to) : new BitSet();
    if (unknown.isEmpty() || expiry() != null) {
      return new BitSet();
    }
    BlockIds ids = idsOf(unknown);
    BitSet answer = new BitSet();
    try {
      answer = next.lookup(ids);
    } catch (RuntimeException e) {
      // Not known is not there: the blocks are written, and the next stage takes them or not.
      LOG.warn("{} did not say which blocks it has; all are dumped: {}", next, e.toString());
      isAnswering = false;
    }
    return present(unknown, ids, answer);
  }

  /**
   * Those of some blocks that the next stage must be asked for: they may have been there, and be lost
   * since. Of a block that was dumped in part it is known that the next stage lacks it, until the last layer
   * is here.
   */
  private BitSet unknown(int from, int to) {
    BlockIds ids = transfer.ids();
    BitSet unknown = new BitSet(to);
    for (int block = from; block < to; block++) {
      int shard = starts[block];
      unknown.set(
          block,
          cache.pool.isComplete(ids, shard)
              || !cache.pool.wasDumped(ids.high(shard), ids.low(shard)));
    }
    return unknown;
  }

  /**
   * Leaves those blocks of some that are present, and has the pool forget the others.
   *
   * @param unknown the blocks
   * @param ids of each of them in turn
   * @param answer for each of them in turn, whether it is present
   */
  private BitSet present(BitSet unknown, BlockIds ids, BitSet answer) {
    int i = 0;
    for (int block = unknown.nextSetBit(0); block >= 0; block = unknown.nextSetBit(block + 1)) {
      if (!answer.get(i)) {
        cache.pool.forgetLost(ids.high(i), ids.low(i));
        unknown.clear(block);
      }
      i++;
    }
    return unknown;
  }

  private BlockIds idsOf(BitSet blocks) {
    BitSet shards = new BitSet(shardCount);
    for (int block = blocks.nextSetBit(0); block >= 0; block = blocks.nextSetBit(block + 1)) {
      shards.set(starts[block]);
    }
    return transfer.ids().select(0, shards);
  }

  @Override
  long reserve(int shard, boolean mayTake) {
    BlockIds ids = transfer.ids();
    return cache.pool.reserveForDump(
        ids.high(shard), ids.low(shard), transfer.shardIndex(shard), mayTake);
  }

  @Override
  void hasExpired(int shard) {
    BlockIds ids = transfer.ids();
    cache.dumps.failed().tell(ids.high(shard), ids.low(shard), expiry());
    settle(shard);
  }

  /** Settles what needs no move before it ends: who sees the dump end and flushes finds none pending. */
  @Override
  void goOn(int[] shards) {
    settle(shards, 0, shards.length);
    for (int shard : shards) {
      endUntaken(shard, ShardOutcome.OK, null);
    }
  }

  @Override
  void fill(int[] shards) {
    cache.copy(new Copy(this, shards, slotsOf(shards)));
  }

  /** Says that a shard is settled, which no thread says twice. */
  void settle(int shard) {
    settle(new int[] {shard}, 0, 1);
  }

  /** Says that those shards of a run are settled that have no negative number. */
  void settle(int[] shards, int from, int to) {
    boolean last;
    boolean hurried;
    synchronized (unsettled) {
      for (int i = from; i < to; i++) {
        if (shards[i] >= 0) {
          unsettled.clear(shards[i]);
        }
      }
      // All are, for the first time.
      last = unsettled.isEmpty() && !isSettled;
      isSettled |= last;
      hurried = isHurried;
    }
    if (last && hurried) {
      cache.writes.hurry(-1);
    }
    if (last) {
      cache.dumps.settled().accept(this);
    }
  }

  @Override
  protected boolean settlesWhenCompleted() {
    return false;
  }

  /** No writes are held back until then. */
  @Override
  protected void settlingIsAwaited() {
    synchronized (unsettled) {
      if (isSettled || isHurried) {
        return;
      }
      isHurried = true;
    }
    cache.writes.hurry(1);
  }

  @Override
  protected void collectPending(Set<BlockIds> pending) {
    BlockIds ids = transfer.ids();
    synchronized (unsettled) {
      for (int i = unsettled.nextSetBit(0); i >= 0; i = unsettled.nextSetBit(i + 1)) {
        pending.add(BlockIds.of(ids.high(i), ids.low(i)));
      }
    }
  }

  /** The shard's block failed. */
  void failed(int shard, @Nullable Throwable cause) {
    cache.failed(transfer.ids().high(shard), transfer.ids().low(shard), cause);
  }

  /**
   * Shards of a dump that have a slot each, on their way out of the engine's memory.
   *
   * <p>They are cut into groups, at the boundary of blocks where that is possible; when the last shard of
   * a group is in its slot, the group is written to the next stage in one transfer. The first group of a dump
   * is of some megabytes, so that writing begins soon, and each may have twice as many shards as the one
   * before, so that there are few; none is a large part of the pool, as its slots come free together.
   */
  static final class Copy extends CopyBatch {

    /** So many bytes are in the first group, or one shard if that is larger. */
    static final long GROUP_BYTES = 4L << 20;

    // So many times as many shards may be added to a group until a block ends.
    private static final int OVERFLOW = 3;
    // So many times as many shards as the first group are in the largest.
    private static final int LARGEST = 16;
    // So many times the largest group fits into the pool.
    private static final int PARTS = 8;
    private static final int FIRST_GROUPS = 8;

    private final DumpTask dump;
    // The first shard of each group, and the end of the last one.
    private final int[] groupStarts;
    private final AtomicIntegerArray openInGroup;

    /** Takes over shards, each with the slot that it reserved. */
    Copy(DumpTask dump, int[] shards, int[] slots) {
      super(dump, shards, slots, shards.length);
      this.dump = dump;
      this.groupStarts = groupStarts();
      int groups = groupStarts.length - 1;
      this.openInGroup = new AtomicIntegerArray(groups);
      for (int i = 0; i < groups; i++) {
        openInGroup.set(i, groupStarts[i + 1] - groupStarts[i]);
      }
    }

    private int[] groupStarts() {
      int size = shards.length;
      long first = Math.max(1, GROUP_BYTES / dump.transfer.layout().shardSize());
      long most = Math.max(first, Math.min(LARGEST * first, cache.pool.limit() / PARTS));
      long perGroup = Math.max(first, dump.groupShards);
      BlockIds ids = dump.transfer.ids();
      int[] starts = new int[FIRST_GROUPS];
      int group = 0;
      for (int i = 1; i < size; i++) {
        int length = i - starts[group];
        boolean sameBlock = isSameBlock(ids, shards[i], shards[i - 1]);
        if (length >= perGroup && (!sameBlock || length >= perGroup + OVERFLOW * first)) {
          if (group + 2 == starts.length) {
            starts = Arrays.copyOf(starts, 2 * starts.length);
          }
          starts[++group] = i;
          perGroup = Math.min(most, 2 * perGroup);
        }
      }
      starts[group + 1] = size;
      dump.groupShards = Math.min(most, 2 * perGroup);
      return Arrays.copyOf(starts, group + 2);
    }

    @Override
    protected void end(int from, int to) {
      boolean alone = cache.next == null;
      cache.metrics.dumpBytes.add(copiedBytes(from, to));
      cache.pool.filled(slots, from, to, alone);
      if (alone) {
        dump.settle(shards, from, to);
      }
      finishWell(from, to);
      int group = groupOf(from);
      for (int first = from; first < to; group++) {
        int end = Math.min(to, groupStarts[group + 1]);
        ended(group, end - first);
        first = end;
      }
    }

    private int groupOf(int index) {
      int found = Arrays.binarySearch(groupStarts, index);
      return found >= 0 ? found : -found - 2;
    }

    private void ended(int group, int shardCount) {
      // The decrement publishes the slots to the thread that completes the group.
      if (openInGroup.addAndGet(group, -shardCount) == 0 && cache.next != null) {
        cache.writes.offer(new NextWrite(dump, this, groupStarts[group], groupStarts[group + 1]));
      }
    }

    @Override
    void givenUp(int shard, int slot, @Nullable Throwable cause) {
      cache.pool.notFilled(slot, ShardOutcome.MISSING, null);
      dump.failed(shard, cause);
      dump.settle(shard);
    }
  }
}
