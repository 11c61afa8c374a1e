package ucm.store.cache;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Transfer;

/**
 * A dump. Shards that are here or in the backend need no move; the others take a slot each, are copied
 * into it by the copy threads, and end for the engine. From then on the slots are a hit, and are written
 * to the backend in the background.
 *
 * <p>For the engine the dump ends when the bytes have left its memory. For {@code flush} it is
 * <em>settled</em> when the backend is done with each shard, or the shard failed or needed no move.
 */
final class DumpWork extends Work {

  private static final Logger LOG = LoggerFactory.getLogger(DumpWork.class);

  // In todo: the backend has the shard's block.
  private static final int DONE = -1;

  private final DistinctBlocks blocks;
  private final AtomicInteger unsettled;

  DumpWork(OpenCache cache, long id, Transfer transfer) {
    super(cache, id, transfer);
    this.blocks = new DistinctBlocks(transfer.ids());
    this.unsettled = new AtomicInteger(transfer.shardCount());
  }

  @Override
  String operation() {
    return "DUMP";
  }

  /** Whether the backend must be asked which of the blocks it has. */
  boolean mustAsk() {
    if (cache.backend == null) {
      return false;
    }
    for (int block = 0; block < blocks.count(); block++) {
      if (isUnknown(block)) {
        return true;
      }
    }
    return false;
  }

  /** Asks the backend, and ends the shards of blocks that it has. May block. */
  void ask(Store backend) {
    BlockIds ids = transfer.ids();
    int[] asked = new int[blocks.count()];
    long[] words = new long[2 * asked.length];
    int count = 0;
    for (int block = 0; block < asked.length; block++) {
      if (isUnknown(block)) {
        int shard = blocks.firstShard(block);
        words[2 * count] = ids.high(shard);
        words[2 * count + 1] = ids.low(shard);
        asked[block] = ++count;
      }
    }
    BitSet present;
    try {
      present = backend.lookup(BlockIds.wrap(words).slice(0, count));
    } catch (RuntimeException e) {
      // Not known is not there: the blocks are written, and the backend takes them or not.
      LOG.warn("{} did not say which blocks it has; all are dumped: {}", backend, e.toString());
      return;
    }
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      int number = asked[blocks.blockOf(shard)];
      if (number > 0 && present.get(number - 1) && begin(shard)) {
        finish(shard, ShardOutcome.OK, null);
        settle(1);
        todo[shard] = DONE;
      }
    }
  }

  @Override
  long plan(long fullStripes) {
    BlockIds ids = transfer.ids();
    SlotDirectory pool = cache.pool;
    int count = todoCount;
    int left = 0;
    int claims = 0;
    int settled = 0;
    int[] shards = new int[count];
    int[] slots = new int[count];
    long full = fullStripes;
    boolean again = wantsRoom();
    for (int i = 0; i < count; i++) {
      int shard = todo[i];
      if (shard == DONE) {
        continue;
      }
      long high = ids.high(shard);
      long low = ids.low(shard);
      if (!isOpen(shard)) {
        cache.ledger.failed(high, low, expiry());
        settled++;
        continue;
      }
      long claim = pool.claimForDump(high, low, transfer.shardIndex(shard), full);
      switch (Claim.kind(claim)) {
        case Claim.CLAIMED -> {
          shards[claims] = shard;
          slots[claims++] = Claim.number(claim);
        }
        case Claim.NO_ROOM -> {
          full |= 1L << Claim.number(claim);
          todo[left++] = shard;
          if (again && pool.isFull(full)) {
            left = keepRest(i + 1, count, left);
            i = count;
          }
        }
        default -> {
          end(shard, ShardOutcome.OK, null);
          settled++;
        }
      }
    }
    keep(left);
    if (claims > 0) {
      cache.writes.copy(new DumpCopy(this, shards, slots, claims));
    }
    settle(settled);
    return full;
  }

  /** Says that so many shards are settled; the last one takes the dump out of the ledger. */
  void settle(int shards) {
    if (shards > 0 && unsettled.addAndGet(-shards) == 0) {
      cache.ledger.remove(this);
    }
  }

  /** How many blocks the shards that are not settled make, rounded up. */
  long pendingBlocks() {
    return Math.ceilDiv(unsettled.get(), Math.ceilDiv(transfer.shardCount(), blocks.count()));
  }

  /** The shard's block failed. */
  void failed(int shard, @Nullable Throwable cause) {
    cache.ledger.failed(transfer.ids().high(shard), transfer.ids().low(shard), cause);
  }

  private boolean isUnknown(int block) {
    int shard = blocks.firstShard(block);
    BlockIds ids = transfer.ids();
    return !cache.pool.wasDumped(ids.high(shard), ids.low(shard))
        && !cache.pool.isComplete(ids, shard);
  }
}
