package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.store.cache.eviction.BlockTable;

/**
 * The slots of a pool that is cut into stripes. The hash of a block's id chooses its stripe; here each
 * call goes to the stripe that it concerns, and waiters are told what it answers.
 *
 * <p>Nothing here blocks, and no lock is held while a {@link SlotWaiter} is called. Thread-safe.
 */
public abstract class StripedSlots implements SlotDirectory {

  private final SlotStripe[] stripes;
  private final Runnable whenRoom;
  private volatile int wanting;

  /**
   * Slots in stripes.
   *
   * @param stripes as many as a power of two, 64 at the most
   * @param whenRoom is told that slots came free while tasks {@linkplain #wanting want} some; must
   *     not block
   */
  public StripedSlots(SlotStripe[] stripes, Runnable whenRoom) {
    this.stripes = stripes;
    this.whenRoom = whenRoom;
  }

  /** The number of the stripe that has a slot. */
  public abstract int stripeOfSlot(int slot);

  /** The number of the stripe that blocks of a hash are in. */
  public final int stripeOf(long hash) {
    return (int) (hash >>> 40) & (stripes.length - 1);
  }

  @Override
  public boolean isComplete(BlockIds ids, int i) {
    long hash = BlockTable.hash(ids.high(i), ids.low(i));
    return stripes[stripeOf(hash)].isComplete(hash, ids.high(i), ids.low(i));
  }

  @Override
  public long reserveForLoad(
      long high, long low, int shard, @Nullable SlotWaiter waiter, int index, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    int stripe = stripeOf(hash);
    boolean mayTake = (fullStripes >>> stripe & 1) == 0;
    return stripes[stripe].reserveForLoad(hash, high, low, shard, waiter, index, mayTake);
  }

  @Override
  public long reserveForDump(long high, long low, int shard, long fullStripes) {
    long hash = BlockTable.hash(high, low);
    int stripe = stripeOf(hash);
    boolean mayTake = (fullStripes >>> stripe & 1) == 0;
    return stripes[stripe].reserveForDump(hash, high, low, shard, mayTake);
  }

  @Override
  public long reserveUnnamed(long high, long low, long fullStripes) {
    int stripe = stripeOf(BlockTable.hash(high, low));
    if ((fullStripes >>> stripe & 1) != 0) {
      return Reservation.of(Reservation.NO_ROOM, stripe);
    }
    return stripes[stripe].reserveUnnamed();
  }

  @Override
  public void filled(int slot, boolean release) {
    SlotStripe stripe = stripes[stripeOfSlot(slot)];
    int answer = stripe.filled(slot, release);
    if ((answer & SlotStripe.JOINED) != 0) {
      tellFilled(stripe, slot);
      answer = release ? stripe.release(slot) : 0;
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
      SlotStripe stripe = stripes[stripeOfSlot(slots[start])];
      int answer = stripe.filled(slots, start, end, release);
      if ((answer & SlotStripe.JOINED) != 0) {
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

  @Override
  public void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause) {
    SlotStripe stripe = stripes[stripeOfSlot(slot)];
    stripe.notFilled(slot);
    SlotWait all = stripe.takeWaits(slot);
    for (SlotWait joined = all; joined != null; joined = joined.next()) {
      release(slot);
      joined.waiter().notFilled(joined.index(), outcome, cause);
    }
    if (all != null) {
      stripe.giveBack(all);
    }
  }

  @Override
  public void release(int slot) {
    tellRoom(stripes[stripeOfSlot(slot)].release(slot));
  }

  @Override
  public void release(int[] slots, int from, int to) {
    for (int start = from, end; start < to; start = end) {
      end = endOfStripe(slots, start, to);
      if (slots[start] >= 0) {
        tellRoom(stripes[stripeOfSlot(slots[start])].release(slots, start, end));
      }
    }
  }

  @Override
  public void drop(long high, long low) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripes[stripeOf(hash)].drop(hash, high, low));
  }

  @Override
  public void forgetLost(long high, long low, boolean whole) {
    long hash = BlockTable.hash(high, low);
    tellRoom(stripes[stripeOf(hash)].forgetLost(hash, high, low, whole));
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
  public int referenced() {
    int sum = 0;
    for (SlotStripe stripe : stripes) {
      sum += stripe.referenced();
    }
    return sum;
  }

  /** Slots may have come free. */
  public final void offerRoom() {
    if (wanting > 0) {
      whenRoom.run();
    }
  }

  /** Slots came free, which is told to those who want some. */
  protected void roomCame() {
    offerRoom();
  }

  private void tellRoom(int answer) {
    if ((answer & SlotStripe.ROOM) != 0) {
      roomCame();
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

  private static void tellFilled(SlotStripe stripe, int slot) {
    SlotWait all = stripe.takeWaits(slot);
    for (SlotWait joined = all; joined != null; joined = joined.next()) {
      joined.waiter().filled(joined.index(), slot);
    }
    if (all != null) {
      stripe.giveBack(all);
    }
  }
}
