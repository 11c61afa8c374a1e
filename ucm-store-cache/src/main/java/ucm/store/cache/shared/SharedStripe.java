package ucm.store.cache.shared;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreMetrics;
import ucm.store.cache.pool.Reservation;
import ucm.store.cache.pool.SlotStripe;
import ucm.store.cache.pool.SlotWait;
import ucm.store.cache.pool.SlotWaiter;

/**
 * This process's side of one stripe of a shared pool.
 *
 * <p>In the segment an owner refers to a slot or does not: one bit. How many of its threads do, and who
 * of them waits for what, is counted here, under a lock of this process, which no other one can meet. The
 * words in the segment change by compare-and-swap; the stripe's shared lock is taken only to give a
 * block a place or to free one.
 */
final class SharedStripe implements SlotStripe {

  private final int number;
  private final SegmentLayout layout;
  private final SegmentWords words;
  private final SegmentOwners owners;
  private final SlabTable table;
  private final StripeSlabs slabs;
  private final boolean hasNext;
  private final int own;
  private final int shards;
  private final ReentrantLock local = new ReentrantLock();
  // Guarded by local.
  private final SlotReferences references;

  SharedStripe(
      int number,
      SegmentLayout layout,
      SegmentWords words,
      SegmentOwners owners,
      boolean hasNext,
      StoreMetrics.Counter evictions) {
    this.number = number;
    this.layout = layout;
    this.words = words;
    this.owners = owners;
    this.own = owners.own();
    this.table = new SlabTable(words, layout, number, own);
    this.slabs = new StripeSlabs(words, layout, owners, number, hasNext, evictions);
    this.hasNext = hasNext;
    this.shards = layout.shards();
    this.references =
        new SlotReferences(
            words,
            layout,
            own,
            layout.firstSlab(number) * shards,
            layout.firstSlab(number + 1) * shards);
  }

  @Override
  public boolean isComplete(long hash, long high, long low) {
    int slab = table.find(hash, high, low);
    return slab != SlabTable.NONE
        && SlabWord.isComplete(table.word(slab))
        && table.holds(slab, high, low);
  }

  /** The owners that dumped a shard of the block which is still here, bit by bit. */
  int dumpers(long hash, long high, long low) {
    int slab = table.find(hash, high, low);
    if (slab == SlabTable.NONE) {
      return 0;
    }
    int dumpers = SlabWord.dumpers(table.word(slab));
    return table.holds(slab, high, low) ? dumpers : 0;
  }

  @Override
  public long reserveForLoad(
      long hash,
      long high,
      long low,
      int shard,
      @Nullable SlotWaiter waiter,
      int index,
      boolean mayTake) {
    local.lock();
    try {
      while (true) {
        int slab = table.find(hash, high, low);
        if (slab == SlabTable.NONE) {
          slab = mayTake ? slabs.take(hash, high, low, shard, SlotWord.LOADING) : SlabTable.NONE;
          if (slab == SlabTable.FOUND) {
            continue;
          }
          return slab == SlabTable.NONE ? noRoom() : reserved(slab * shards + shard);
        }
        int slot = slab * shards + shard;
        long word = words.get(layout.slotWordAt(slot));
        // Asked after the word was read: the word is this block's as long as it stays the same.
        if (!table.holds(slab, high, low)) {
          continue;
        }
        switch (SlotWord.state(word)) {
          case SlotWord.READY -> {
            if (references.add(slot, word)) {
              return Reservation.of(Reservation.HIT, slot);
            }
          }
          case SlotWord.LOADING, SlotWord.DUMPING -> {
            if (waiter == null || references.join(slot, word, waiter, index)) {
              return Reservation.of(Reservation.FILLING, slot);
            }
          }
          case SlotWord.EMPTY -> {
            if (!mayTake) {
              return noRoom();
            }
            if (reserve(slab, slot, word, SlotWord.LOADING)) {
              return Reservation.of(Reservation.RESERVED, slot);
            }
          }
          default -> Thread.onSpinWait();
        }
      }
    } finally {
      local.unlock();
    }
  }

  @Override
  public long reserveForDump(long hash, long high, long low, int shard, boolean mayTake) {
    local.lock();
    try {
      while (true) {
        int slab = table.find(hash, high, low);
        if (slab == SlabTable.NONE) {
          slab = mayTake ? slabs.take(hash, high, low, shard, SlotWord.DUMPING) : SlabTable.NONE;
          if (slab == SlabTable.FOUND) {
            continue;
          }
          return slab == SlabTable.NONE ? noRoom() : reserved(slab * shards + shard);
        }
        int slot = slab * shards + shard;
        long before = table.word(slab);
        long word = words.get(layout.slotWordAt(slot));
        boolean holds = table.holds(slab, high, low);
        // Read after the slot's: an owner that has reserved a slot for a dump is among the dumpers
        // by then.
        long slabWord = table.word(slab);
        if (!holds || !SlabWord.sameBlock(before, slabWord)) {
          continue;
        }
        if ((SlabWord.dumpers(slabWord) & ~(1 << own)) != 0) {
          return Reservation.of(Reservation.ELSEWHERE, slot);
        }
        switch (SlotWord.state(word)) {
          case SlotWord.READY, SlotWord.DUMPING -> {
            return Reservation.of(Reservation.HIT, slot);
          }
          case SlotWord.LOADING -> {
            if (!mayTake) {
              return noRoom();
            }
            table.orphan(slab);
          }
          case SlotWord.EMPTY -> {
            if (!mayTake) {
              return noRoom();
            }
            if ((!hasNext || table.markDumped(slab, slabWord))
                && reserve(slab, slot, word, SlotWord.DUMPING)) {
              return Reservation.of(Reservation.RESERVED, slot);
            }
          }
          default -> Thread.onSpinWait();
        }
      }
    } finally {
      local.unlock();
    }
  }

  @Override
  public long reserveUnnamed() {
    local.lock();
    try {
      int slab = slabs.takeUnnamed();
      return slab == SlabTable.NONE ? noRoom() : reserved(slab * shards);
    } finally {
      local.unlock();
    }
  }

  @Override
  public int filled(int[] slots, int from, int to, boolean release) {
    int answer = 0;
    int elsewhere = 0;
    int slab = SlabTable.NONE;
    local.lock();
    try {
      for (int i = from; i < to; i++) {
        if (slots[i] < 0) {
          continue;
        }
        if (slab != slots[i] / shards && slab != SlabTable.NONE) {
          table.noteComplete(slab);
        }
        slab = slots[i] / shards;
        elsewhere |= end(slots[i], SlotWord.READY);
        answer |= references.isWaitedFor(slots[i]) ? JOINED : 0;
      }
      if (slab != SlabTable.NONE) {
        table.noteComplete(slab);
      }
      for (int i = from; i < to && release && answer != JOINED; i++) {
        answer |= slots[i] < 0 ? 0 : drop(slots[i]);
      }
    } finally {
      local.unlock();
    }
    owners.wake(elsewhere);
    return answer;
  }

  @Override
  public int filled(int slot, boolean release) {
    int answer;
    int elsewhere;
    local.lock();
    try {
      elsewhere = end(slot, SlotWord.READY);
      table.noteComplete(slot / shards);
      answer = references.isWaitedFor(slot) ? JOINED : 0;
      answer |= release && answer == 0 ? drop(slot) : 0;
    } finally {
      local.unlock();
    }
    owners.wake(elsewhere);
    return answer;
  }

  @Override
  public void notFilled(int slot) {
    int elsewhere;
    local.lock();
    try {
      table.orphan(slot / shards);
      elsewhere = end(slot, SlotWord.FAILED);
    } finally {
      local.unlock();
    }
    owners.wake(elsewhere);
  }

  @Override
  public @Nullable SlotWait takeWaits(int slot) {
    local.lock();
    try {
      return references.takeWaits(slot);
    } finally {
      local.unlock();
    }
  }

  @Override
  public void giveBack(SlotWait all) {
    local.lock();
    try {
      references.giveBack(all);
    } finally {
      local.unlock();
    }
  }

  /** See {@link SlotReferences#takeEnded}. */
  @Nullable SlotWait takeEnded() {
    if (!references.mayHaveEnded()) {
      return null;
    }
    local.lock();
    try {
      return references.takeEnded();
    } finally {
      local.unlock();
    }
  }

  @Override
  public int release(int[] slots, int from, int to) {
    int answer = 0;
    local.lock();
    try {
      for (int i = from; i < to; i++) {
        answer |= slots[i] < 0 ? 0 : drop(slots[i]);
      }
    } finally {
      local.unlock();
    }
    return answer;
  }

  @Override
  public int release(int slot) {
    local.lock();
    try {
      return drop(slot);
    } finally {
      local.unlock();
    }
  }

  @Override
  public int drop(long hash, long high, long low) {
    local.lock();
    try {
      int slab = table.find(hash, high, low);
      if (slab == SlabTable.NONE) {
        return 0;
      }
      table.orphan(slab);
      return slabs.freeIfIdle(slab) ? ROOM : 0;
    } finally {
      local.unlock();
    }
  }

  @Override
  public int forgetLost(long hash, long high, long low, boolean whole) {
    local.lock();
    try {
      int slab = table.find(hash, high, low);
      if (slab == SlabTable.NONE
          || table.isBeingDumped(slab, whole)
          || !table.holds(slab, high, low)) {
        return 0;
      }
      table.orphan(slab);
      return slabs.freeIfIdle(slab) ? ROOM : 0;
    } finally {
      local.unlock();
    }
  }

  @Override
  public int referenced() {
    local.lock();
    try {
      return references.referenced();
    } finally {
      local.unlock();
    }
  }

  private boolean reserve(int slab, int slot, long word, int state) {
    if (!words.swap(layout.slotWordAt(slot), word, SlotWord.reserved(word, own, state))) {
      return false;
    }
    long _ = reserved(slot);
    if (SlabWord.state(table.word(slab)) == SlabWord.NAMED) {
      return true;
    }
    // Evicted in between: the slab has no block, and waits for this reference to go.
    owners.wake(end(slot, SlotWord.FAILED));
    int _ = drop(slot);
    return false;
  }

  /** See {@link StripeSlabs#clear}. */
  boolean clear(int dead, boolean quarantine) {
    return slabs.clear(dead, quarantine);
  }

  private long reserved(int slot) {
    references.reserved(slot);
    return Reservation.of(Reservation.RESERVED, slot);
  }

  /** Ends the filling of a slot, as READY or FAILED; says which other owners wait for it. */
  private int end(int slot, int state) {
    long at = layout.slotWordAt(slot);
    for (long word = words.get(at); SlotWord.isFilling(word); word = words.get(at)) {
      if (words.swap(at, word, SlotWord.withState(word, state))) {
        return SlotWord.owners(word) & ~(1 << own);
      }
    }
    return 0;
  }

  /** Takes a reference away; {@link #ROOM} when it was the last. */
  private int drop(int slot) {
    if (!references.remove(slot)) {
      return 0;
    }
    int slab = slot / shards;
    if (!slabs.freeIfIdle(slab)) {
      table.touch(slab);
    }
    return ROOM;
  }

  private long noRoom() {
    return Reservation.of(Reservation.NO_ROOM, number);
  }
}
