package ucm.store.cache.pool;

import java.util.concurrent.locks.StampedLock;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreMetrics;
import ucm.store.cache.eviction.BlockTable;
import ucm.store.cache.eviction.CachePolicy;

/**
 * One part of the pool: some slots and the blocks that hash to it, under one lock.
 *
 * <p>Look-ups read optimistically and take no lock unless the stripe changes at that moment. A
 * stripe knows its slots from 0; what comes from and goes to the outside is offset by its first slot.
 */
final class PoolStripe {

  /** Answer to {@link #filled}: a task waits for one of the slots. */
  static final int JOINED = 1;

  /** Answer to several calls: a slot can now be taken by others. */
  static final int ROOM = 2;

  private static final int NONE = BlockTable.NONE;

  private final int number;
  private final int firstSlot;
  private final StoreMetrics.Counter evictions;
  private final StampedLock lock = new StampedLock();
  // Guarded by lock.
  private final StripeSlots slots;
  private final SlotWaits joined;

  /**
   * A stripe of free slots.
   *
   * @param number of the stripe
   * @param firstSlot what its first slot is called outside
   * @param count how many slots
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   */
  PoolStripe(
      int number,
      int firstSlot,
      int count,
      int shards,
      CachePolicy policy,
      StoreMetrics.Counter evictions) {
    this.number = number;
    this.firstSlot = firstSlot;
    this.evictions = evictions;
    this.slots = new StripeSlots(count, shards, policy);
    this.joined = new SlotWaits(count);
  }

  boolean isComplete(long hash, long high, long low) {
    long stamp = lock.tryOptimisticRead();
    boolean complete = slots.isComplete(hash, high, low);
    if (!lock.validate(stamp)) {
      stamp = lock.readLock();
      try {
        complete = slots.isComplete(hash, high, low);
      } finally {
        lock.unlockRead(stamp);
      }
    }
    return complete;
  }

  /** Whether a shard of the block was dumped and some shard is still here. */
  boolean wasDumped(long hash, long high, long low) {
    long stamp = lock.readLock();
    try {
      return slots.wasDumped(hash, high, low);
    } finally {
      lock.unlockRead(stamp);
    }
  }

  long reserveForLoad(
      long hash,
      long high,
      long low,
      int shard,
      @Nullable SlotWaiter waiter,
      int index,
      boolean mayTake) {
    long stamp = lock.writeLock();
    try {
      int slot = slots.find(hash, high, low, shard);
      if (slot == NONE) {
        return mayTake
            ? reserved(slots.take(hash, high, low, shard, StripeSlots.LOADING))
            : Reservation.of(Reservation.NO_ROOM, number);
      }
      if (slots.state(slot) == StripeSlots.READY) {
        slots.reference(slot);
        slots.use(slot);
        return Reservation.of(Reservation.HIT, firstSlot + slot);
      }
      if (waiter != null) {
        slots.reference(slot);
        joined.add(slot, waiter, index);
      }
      return Reservation.of(Reservation.FILLING, firstSlot + slot);
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  long reserveForDump(long hash, long high, long low, int shard, boolean mayTake) {
    long stamp = lock.writeLock();
    try {
      int slot = slots.find(hash, high, low, shard);
      if (slot != NONE && slots.state(slot) != StripeSlots.LOADING) {
        boolean ready = slots.state(slot) == StripeSlots.READY;
        if (ready) {
          slots.use(slot);
        }
        return Reservation.of(ready ? Reservation.HIT : Reservation.FILLING, firstSlot + slot);
      }
      return mayTake
          ? reserved(slots.take(hash, high, low, shard, StripeSlots.DUMPING))
          : Reservation.of(Reservation.NO_ROOM, number);
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  long reserveUnnamed() {
    long stamp = lock.writeLock();
    try {
      return reserved(slots.takeOrphan());
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  /**
   * Says that reserved slots are filled. When a task waits for one of them, all references are kept, and the
   * filler gives them back after it has told the waiters: a slot that went to another block before would
   * have others wait for it.
   *
   * @param filled negative numbers are passed over
   * @param release whether to give the filler's references back
   * @return {@link #JOINED}, or {@link #ROOM}, or 0
   */
  int filled(int[] filled, int from, int to, boolean release) {
    int answer = 0;
    long stamp = lock.writeLock();
    try {
      for (int i = from; i < to; i++) {
        if (filled[i] >= 0) {
          answer |= fill(filled[i] - firstSlot);
        }
      }
      for (int i = from; i < to && release && answer != JOINED; i++) {
        if (filled[i] >= 0 && slots.release(filled[i] - firstSlot)) {
          answer = ROOM;
        }
      }
    } finally {
      lock.unlockWrite(stamp);
    }
    return answer;
  }

  int filled(int slot, boolean release) {
    long stamp = lock.writeLock();
    try {
      int answer = fill(slot - firstSlot);
      return answer == 0 && release && slots.release(slot - firstSlot) ? ROOM : answer;
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  void notFilled(int slot) {
    long stamp = lock.writeLock();
    try {
      slots.orphan(slot - firstSlot);
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  @Nullable SlotWait takeWaits(int slot) {
    long stamp = lock.writeLock();
    try {
      return joined.take(slot - firstSlot);
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  void giveBack(SlotWait all) {
    long stamp = lock.writeLock();
    try {
      joined.giveBack(all);
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  int release(int[] held, int from, int to) {
    int answer = 0;
    long stamp = lock.writeLock();
    try {
      for (int i = from; i < to; i++) {
        if (held[i] >= 0 && slots.release(held[i] - firstSlot)) {
          answer = ROOM;
        }
      }
    } finally {
      lock.unlockWrite(stamp);
    }
    return answer;
  }

  int release(int slot) {
    long stamp = lock.writeLock();
    try {
      return slots.release(slot - firstSlot) ? ROOM : 0;
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  int drop(long hash, long high, long low) {
    long stamp = lock.writeLock();
    try {
      return slots.drop(hash, high, low) > 0 ? ROOM : 0;
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  int forgetLost(long hash, long high, long low) {
    long stamp = lock.writeLock();
    try {
      boolean dumping = slots.isBeingDumped(hash, high, low);
      return !dumping && slots.drop(hash, high, low) > 0 ? ROOM : 0;
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  /** Drops the blocks of which only some shards were dumped; {@link #ROOM} or 0. */
  int dropUnfinished() {
    long stamp = lock.writeLock();
    try {
      return slots.dropUnfinished() > 0 ? ROOM : 0;
    } finally {
      lock.unlockWrite(stamp);
    }
  }

  /** Slots that hold, or are about to hold, something. */
  int inUse() {
    long stamp = lock.readLock();
    try {
      return slots.inUse();
    } finally {
      lock.unlockRead(stamp);
    }
  }

  int referenced() {
    long stamp = lock.readLock();
    try {
      return slots.referenced();
    } finally {
      lock.unlockRead(stamp);
    }
  }

  private int fill(int slot) {
    slots.ready(slot);
    return joined.has(slot) ? JOINED : 0;
  }

  private long reserved(int slot) {
    if (slot == NONE) {
      return Reservation.of(Reservation.NO_ROOM, number);
    }
    long evicted = slots.takeEvicted();
    if (evicted > 0) {
      evictions.add(evicted);
    }
    return Reservation.of(Reservation.RESERVED, firstSlot + slot);
  }
}
