package ucm.store.cache.pool;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreMetrics;
import ucm.platform.table.BlockTable;
import ucm.store.cache.config.CachePolicy;

/**
 * Says which slot of the pool a shard has, and gives slots out.
 *
 * <p>The slots are divided among stripes, 64 at the most, each a small pool of its own with its own lock,
 * blocks and eviction order; the hash of a block's id chooses the stripe. A stripe has room for at least
 * {@value #BLOCKS_PER_STRIPE} blocks, so that chance fills them about evenly; a small pool is one stripe. A
 * task remembers the stripes that had no room in the bits of a long.
 *
 * <p>Nothing here blocks for longer than a short critical section, and no lock is held while a {@link
 * SlotWaiter} is called. Thread-safe.
 */
public final class SlotPool {

  /** Take no slot of any stripe. */
  public static final long ALL_STRIPES = -1;

  private static final int BLOCKS_PER_STRIPE = 4096;
  private static final int MAX_STRIPES = 64;

  private final PoolStripe[] stripes;
  private final int slotsPerStripe;
  // Those who want slots that were not to be had.
  private final List<Runnable> wanting = new CopyOnWriteArrayList<>();

  /**
   * A pool of free slots.
   *
   * @param slots how many
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   * @param evictions counts the shards evicted
   */
  public SlotPool(int slots, int shards, CachePolicy policy, StoreMetrics.Counter evictions) {
    long blocks = slots / shards;
    int count = Integer.highestOneBit(Math.clamp(blocks / BLOCKS_PER_STRIPE, 1, MAX_STRIPES));
    stripes = new PoolStripe[count];
    slotsPerStripe = slots / count;
    for (int i = 0; i < count; i++) {
      int own = i == count - 1 ? slots - i * slotsPerStripe : slotsPerStripe;
      stripes[i] = new PoolStripe(i, i * slotsPerStripe, own, shards, policy, evictions);
    }
  }

  /** Whether a block is here with all its shards, ready to be read. */
  public boolean isComplete(BlockIds ids, int i) {
    long hash = BlockTable.hash(ids.high(i), ids.low(i));
    return stripe(hash).isComplete(hash, ids.high(i), ids.low(i));
  }

  /** Whether some shard of a block was dumped here and is still here. */
  public boolean wasDumped(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return stripe(hash).wasDumped(hash, high, low);
  }

  /**
   * Asks for a shard in order to read it; takes a slot for it if it is not there.
   *
   * @param waiter waits for a slot that is being filled; null when no result is wanted
   * @param index what the waiter calls the shard
   * @param fullStripes bit i set: take no slot of stripe i
   * @return a {@link Reservation}
   */
  public long reserveForLoad(
      long high, long low, int shard, @Nullable SlotWaiter waiter, int index, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    return stripe(hash)
        .reserveForLoad(hash, high, low, shard, waiter, index, mayTake(hash, fullStripes));
  }

  /**
   * Asks for a slot to dump a shard into; see {@link #reserveForLoad}. A load of the shard that is under way
   * is displaced: the dump brings the bytes, and what the load finds is for those who wait for it only.
   */
  public long reserveForDump(long high, long low, int shard, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    return stripe(hash).reserveForDump(hash, high, low, shard, mayTake(hash, fullStripes));
  }

  /** Asks for a slot that look-ups do not find; the id only spreads such slots over the stripes. */
  public long reserveUnnamed(long high, long low, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    return mayTake(hash, fullStripes)
        ? stripe(hash).reserveUnnamed()
        : Reservation.of(Reservation.NO_ROOM, stripeOf(hash));
  }

  /**
   * Makes a reserved slot readable.
   *
   * @param release whether to give the filler's reference back
   */
  public void filled(int slot, boolean release) {
    PoolStripe stripe = stripes[stripeOfSlot(slot)];
    int answer = stripe.filled(slot, release);
    if (answer == PoolStripe.JOINED) {
      tellFilled(stripe, slot);
      answer = release ? stripe.release(slot) : 0;
    }
    tellRoom(answer);
  }

  /** Makes reserved slots readable; negative numbers are passed over. */
  public void filled(int[] slots, int from, int to, boolean release) {
    for (int start = from, end; start < to; start = end) {
      end = endOfStripe(slots, start, to);
      if (slots[start] < 0) {
        continue;
      }
      PoolStripe stripe = stripes[stripeOfSlot(slots[start])];
      int answer = stripe.filled(slots, start, end, release);
      if (answer == PoolStripe.JOINED) {
        for (int i = start; i < end; i++) {
          if (slots[i] >= 0) {
            tellFilled(stripe, slots[i]);
          }
        }
        answer = release ? stripe.release(slots, start, end) : 0;
      }
      tellRoom(answer);
    }
  }

  /**
   * Hides a reserved slot from look-ups; the filler's reference stays, and keeps the slot from
   * being reused, until the filler's I/O has completed.
   */
  public void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause) {
    PoolStripe stripe = stripes[stripeOfSlot(slot)];
    stripe.notFilled(slot);
    for (SlotWait joined = stripe.takeWaits(slot); joined != null; joined = joined.next()) {
      release(slot);
      joined.waiter().notFilled(joined.index(), outcome, cause);
    }
  }

  /** Gives a reference to a slot back. */
  public void release(int slot) {
    tellRoom(stripes[stripeOfSlot(slot)].release(slot));
  }

  /** Gives references to slots back; negative numbers are passed over. */
  public void release(int[] slots, int from, int to) {
    for (int start = from, end; start < to; start = end) {
      end = endOfStripe(slots, start, to);
      if (slots[start] >= 0) {
        tellRoom(stripes[stripeOfSlot(slots[start])].release(slots, start, end));
      }
    }
  }

  /** Forgets a block; shards in use go with their last reference. */
  public void drop(long high, long low) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripe(hash).drop(hash, high, low));
  }

  /**
   * Forgets a block that the next stage was asked for and does not have, so that a dump takes all its
   * shards. What was loaded proves nothing any more: it came from the next stage and is gone there. Only a dump
   * that is under way is left alone: some of its shards are still to come, or are referenced, as those
   * are that wait to be written.
   */
  public void forgetLost(long high, long low) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripe(hash).forgetLost(hash, high, low));
  }

  /**
   * Forgets the blocks of which only some shards were dumped: the store that began them has left, so none
   * takes what is here for a part of what its next stage has.
   */
  public void dropUnfinished() {
    for (PoolStripe stripe : stripes) {
      tellRoom(stripe.dropUnfinished());
    }
  }

  /** Whether the bits of a set name all stripes. */
  public boolean isFull(long fullStripes) {
    return Long.numberOfTrailingZeros(~fullStripes) >= stripes.length;
  }

  /** Whether a task wants slots that were not to be had. */
  public boolean isWanted() {
    return !wanting.isEmpty();
  }

  /**
   * Has a store told when slots come free, or not any more.
   *
   * @param whenRoom is run on any thread; must not block
   */
  public void setWanting(Runnable whenRoom, boolean wants) {
    if (!wants) {
      wanting.remove(whenRoom);
    } else if (!wanting.contains(whenRoom)) {
      wanting.add(whenRoom);
    }
  }

  /** Slots that hold, or are about to hold, a shard. */
  public int inUse() {
    int sum = 0;
    for (PoolStripe stripe : stripes) {
      sum += stripe.inUse();
    }
    return sum;
  }

  /** Slots that are being filled, read or written on at this moment. */
  public int referenced() {
    int sum = 0;
    for (PoolStripe stripe : stripes) {
      sum += stripe.referenced();
    }
    return sum;
  }

  private PoolStripe stripe(long hash) {
    return stripes[stripeOf(hash)];
  }

  private int stripeOf(long hash) {
    return (int) (hash >>> 40) & (stripes.length - 1);
  }

  private int stripeOfSlot(int slot) {
    return Math.min(slot / slotsPerStripe, stripes.length - 1);
  }

  private boolean mayTake(long hash, long fullStripes) {
    return (fullStripes >>> stripeOf(hash) & 1) == 0;
  }

  private void tellRoom(int answer) {
    if (answer == PoolStripe.ROOM) {
      wanting.forEach(Runnable::run);
    }
  }

  /** The end of the run of slots that are of the stripe of the first one, or negative as that is. */
  private int endOfStripe(int[] slots, int start, int to) {
    if (slots[start] < 0) {
      return start + 1;
    }
    int stripe = stripeOfSlot(slots[start]);
    int end = start + 1;
    while (end < to && (slots[end] < 0 || stripeOfSlot(slots[end]) == stripe)) {
      end++;
    }
    return end;
  }

  private static void tellFilled(PoolStripe stripe, int slot) {
    for (SlotWait joined = stripe.takeWaits(slot); joined != null; joined = joined.next()) {
      joined.waiter().filled(joined.index(), slot);
    }
  }
}
