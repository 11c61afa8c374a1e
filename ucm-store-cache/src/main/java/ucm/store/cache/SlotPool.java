package ucm.store.cache;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreMetrics;

/**
 * The slots of a pool that is this process's alone, and what is in them.
 *
 * <p>The slots are divided among stripes, each a small pool of its own with its own lock, blocks and
 * eviction order; the hash of a block's id chooses its stripe. A stripe has room for at least {@value
 * #BLOCKS_PER_STRIPE} blocks, so that chance fills them about evenly; a small pool is one stripe. Rejected:
 * one free list and one order for all, which every copy thread would meet at on a large machine.
 *
 * <p>Nothing here blocks, and no lock is held while a {@link SlotWaiter} is called. Thread-safe.
 */
final class SlotPool implements SlotDirectory {

  private static final int BLOCKS_PER_STRIPE = 4096;
  // The stripes without room are remembered in the bits of a long while a task is planned.
  private static final int MAX_STRIPES = 64;

  private final PoolStripe[] stripes;
  private final int slotsPerStripe;
  private final Runnable whenRoom;
  private volatile int wanting;

  /**
   * A pool of free slots.
   *
   * @param slots how many
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   * @param evictions counts the shards evicted
   * @param whenRoom is told that slots came free while somebody {@linkplain #wanting wants} some; must
   *     not block
   */
  SlotPool(
      int slots,
      int shards,
      CachePolicy policy,
      StoreMetrics.Counter evictions,
      Runnable whenRoom) {
    long blocks = slots / shards;
    int count = Integer.highestOneBit(Math.clamp(blocks / BLOCKS_PER_STRIPE, 1, MAX_STRIPES));
    this.slotsPerStripe = slots / count;
    this.stripes = new PoolStripe[count];
    this.whenRoom = whenRoom;
    for (int i = 0; i < count; i++) {
      int own = i == count - 1 ? slots - i * slotsPerStripe : slotsPerStripe;
      stripes[i] = new PoolStripe(i, i * slotsPerStripe, own, shards, policy, evictions);
    }
  }

  @Override
  public boolean isComplete(BlockIds ids, int i) {
    long hash = BlockTable.hash(ids.high(i), ids.low(i));
    return stripes[stripeOf(hash)].isComplete(hash, ids.high(i), ids.low(i));
  }

  @Override
  public boolean wasDumped(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return stripes[stripeOf(hash)].wasDumped(hash, high, low);
  }

  @Override
  public long claimForLoad(
      long high, long low, int shard, @Nullable SlotWaiter waiter, int index, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    int stripe = stripeOf(hash);
    boolean mayTake = (fullStripes >>> stripe & 1) == 0;
    return stripes[stripe].claimForLoad(hash, high, low, shard, waiter, index, mayTake);
  }

  @Override
  public long claimForDump(long high, long low, int shard, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    int stripe = stripeOf(hash);
    boolean mayTake = (fullStripes >>> stripe & 1) == 0;
    return stripes[stripe].claimForDump(hash, high, low, shard, mayTake);
  }

  @Override
  public long claimUnnamed(long high, long low, long fullStripes) {
    int stripe = stripeOf(BlockTable.hash(high, low));
    if ((fullStripes >>> stripe & 1) != 0) {
      return Claim.of(Claim.NO_ROOM, stripe);
    }
    return stripes[stripe].claimUnnamed();
  }

  @Override
  public void filled(int slot, boolean release) {
    PoolStripe stripe = stripeOfSlot(slot);
    int answer = stripe.filled(slot, release);
    if ((answer & PoolStripe.JOINED) != 0) {
      tellFilled(stripe, slot);
    }
    tellRoom(answer);
  }

  @Override
  public void filled(int[] slots, int from, int to, boolean release) {
    for (int start = from, end; start < to; start = end) {
      end = endOfStripe(slots, start, to);
      if (slots[start] < 0) {
        continue;
      }
      PoolStripe stripe = stripeOfSlot(slots[start]);
      int answer = stripe.filled(slots, start, end, release);
      for (int i = start; i < end && (answer & PoolStripe.JOINED) != 0; i++) {
        if (slots[i] >= 0) {
          tellFilled(stripe, slots[i]);
        }
      }
      tellRoom(answer);
    }
  }

  @Override
  public void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause) {
    PoolStripe stripe = stripeOfSlot(slot);
    stripe.notFilled(slot);
    for (PoolStripe.Joined joined = stripe.takeJoined(slot);
        joined != null;
        joined = joined.next()) {
      release(slot);
      joined.waiter().notFilled(joined.index(), outcome, cause);
    }
  }

  @Override
  public void release(int slot) {
    tellRoom(stripeOfSlot(slot).release(slot));
  }

  @Override
  public void release(int[] slots, int from, int to) {
    for (int start = from, end; start < to; start = end) {
      end = endOfStripe(slots, start, to);
      if (slots[start] >= 0) {
        tellRoom(stripeOfSlot(slots[start]).release(slots, start, end));
      }
    }
  }

  @Override
  public void drop(long high, long low) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripes[stripeOf(hash)].drop(hash, high, low));
  }

  @Override
  public void forgetLost(long high, long low) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripes[stripeOf(hash)].forgetLost(hash, high, low));
  }

  @Override
  public boolean isFull(long fullStripes) {
    return Long.numberOfTrailingZeros(~fullStripes) >= stripes.length;
  }

  @Override
  public int wanting() {
    return wanting;
  }

  @Override
  public void setWanting(int tasks) {
    wanting = tasks;
  }

  @Override
  public int inUse() {
    int sum = 0;
    for (PoolStripe stripe : stripes) {
      sum += stripe.inUse();
    }
    return sum;
  }

  @Override
  public int referenced() {
    int sum = 0;
    for (PoolStripe stripe : stripes) {
      sum += stripe.referenced();
    }
    return sum;
  }

  private int stripeOf(long hash) {
    return (int) (hash >>> 40) & (stripes.length - 1);
  }

  private PoolStripe stripeOfSlot(int slot) {
    return stripes[Math.min(slot / slotsPerStripe, stripes.length - 1)];
  }

  /** The end of the run of slots that are of the stripe of the first one, or negative as that is. */
  private int endOfStripe(int[] slots, int start, int to) {
    if (slots[start] < 0) {
      return start + 1;
    }
    PoolStripe stripe = stripeOfSlot(slots[start]);
    int end = start + 1;
    while (end < to && (slots[end] < 0 || stripeOfSlot(slots[end]) == stripe)) {
      end++;
    }
    return end;
  }

  private static void tellFilled(PoolStripe stripe, int slot) {
    for (PoolStripe.Joined joined = stripe.takeJoined(slot);
        joined != null;
        joined = joined.next()) {
      joined.waiter().filled(joined.index(), slot);
    }
  }

  private void tellRoom(int answer) {
    if ((answer & PoolStripe.ROOM) != 0 && wanting > 0) {
      whenRoom.run();
    }
  }
}
