package ucm.store.cache.shared;

import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreMetrics;
import ucm.store.cache.pool.Joined;
import ucm.store.cache.pool.Reservation;
import ucm.store.cache.pool.SlotStripe;
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
  private final StripeSlabs frames;
  private final boolean hasBackend;
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
      boolean hasBackend,
      StoreMetrics.Counter evictions) {
    this.number = number;
    this.layout = layout;
    this.words = words;
    this.owners = owners;
    this.own = owners.own();
    this.table = new SlabTable(words, layout, number, own);
    this.frames = new StripeSlabs(words, layout, owners, number, hasBackend, evictions);
    this.hasBackend = hasBackend;
    this.shards = layout.shards();
    this.references =
        new SlotReferences(
            words,
            layout,
            own,
            layout.firstFrame(number) * shards,
            layout.firstFrame(number + 1) * shards);
  }

  @Override
  public boolean isComplete(long hash, long high, long low) {
    int frame = table.find(hash, high, low);
    return frame != SlabTable.NONE
        && SlabWord.isComplete(table.word(frame))
        && table.holds(frame, high, low);
  }

  /** The owners that dumped a shard of the block which is still here, bit by bit. */
  int dumpers(long hash, long high, long low) {
    int frame = table.find(hash, high, low);
    if (frame == SlabTable.NONE) {
      return 0;
    }
    int dumpers = SlabWord.dumpers(table.word(frame));
    return table.holds(frame, high, low) ? dumpers : 0;
  }

  @Override
  public long claimForLoad(
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
        int frame = table.find(hash, high, low);
        if (frame == SlabTable.NONE) {
          frame = mayTake ? frames.take(hash, high, low, shard, SlotWord.LOADING) : SlabTable.NONE;
          if (frame == SlabTable.FOUND) {
            continue;
          }
          return frame == SlabTable.NONE ? noRoom() : claimed(frame * shards + shard);
        }
        int slot = frame * shards + shard;
        long word = words.get(layout.slotWordAt(slot));
        // Asked after the word was read: the word is this block's as long as it stays the same.
        if (!table.holds(frame, high, low)) {
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
            if (claim(frame, slot, word, SlotWord.LOADING)) {
              return Reservation.of(Reservation.CLAIMED, slot);
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
  public long claimForDump(long hash, long high, long low, int shard, boolean mayTake) {
    local.lock();
    try {
      while (true) {
        int frame = table.find(hash, high, low);
        if (frame == SlabTable.NONE) {
          frame = mayTake ? frames.take(hash, high, low, shard, SlotWord.DUMPING) : SlabTable.NONE;
          if (frame == SlabTable.FOUND) {
            continue;
          }
          return frame == SlabTable.NONE ? noRoom() : claimed(frame * shards + shard);
        }
        int slot = frame * shards + shard;
        long before = table.word(frame);
        long word = words.get(layout.slotWordAt(slot));
        boolean holds = table.holds(frame, high, low);
        // Read after the slot's: who has claimed a slot for a dump is among the dumpers by then.
        long frameWord = table.word(frame);
        if (!holds || !SlabWord.sameBlock(before, frameWord)) {
          continue;
        }
        if ((SlabWord.dumpers(frameWord) & ~(1 << own)) != 0) {
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
            table.orphan(frame);
          }
          case SlotWord.EMPTY -> {
            if (!mayTake) {
              return noRoom();
            }
            if ((!hasBackend || table.markDumped(frame, frameWord))
                && claim(frame, slot, word, SlotWord.DUMPING)) {
              return Reservation.of(Reservation.CLAIMED, slot);
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
  public long claimUnnamed() {
    local.lock();
    try {
      int frame = frames.takeUnnamed();
      return frame == SlabTable.NONE ? noRoom() : claimed(frame * shards);
    } finally {
      local.unlock();
    }
  }

  @Override
  public int filled(int[] slots, int from, int to, boolean release) {
    int answer = 0;
    int elsewhere = 0;
    int frame = SlabTable.NONE;
    local.lock();
    try {
      for (int i = from; i < to; i++) {
        if (slots[i] < 0) {
          continue;
        }
        if (frame != slots[i] / shards && frame != SlabTable.NONE) {
          table.noteComplete(frame);
        }
        frame = slots[i] / shards;
        elsewhere |= end(slots[i], SlotWord.READY);
        answer |= references.isJoined(slots[i]) ? JOINED : 0;
      }
      if (frame != SlabTable.NONE) {
        table.noteComplete(frame);
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
      answer = references.isJoined(slot) ? JOINED : 0;
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
  public @Nullable Joined takeJoined(int slot) {
    local.lock();
    try {
      return references.takeJoined(slot);
    } finally {
      local.unlock();
    }
  }

  @Override
  public void giveBack(Joined all) {
    local.lock();
    try {
      references.giveBack(all);
    } finally {
      local.unlock();
    }
  }

  /** See {@link SlotReferences#takeEnded}. */
  @Nullable Joined takeEnded() {
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
      int frame = table.find(hash, high, low);
      if (frame == SlabTable.NONE) {
        return 0;
      }
      table.orphan(frame);
      return frames.freeIfIdle(frame) ? ROOM : 0;
    } finally {
      local.unlock();
    }
  }

  @Override
  public int forgetLost(long hash, long high, long low, boolean whole) {
    local.lock();
    try {
      int frame = table.find(hash, high, low);
      if (frame == SlabTable.NONE
          || table.isBeingDumped(frame, whole)
          || !table.holds(frame, high, low)) {
        return 0;
      }
      table.orphan(frame);
      return frames.freeIfIdle(frame) ? ROOM : 0;
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

  private boolean claim(int frame, int slot, long word, int state) {
    if (!words.swap(layout.slotWordAt(slot), word, SlotWord.claimed(word, own, state))) {
      return false;
    }
    long _ = claimed(slot);
    if (SlabWord.state(table.word(frame)) == SlabWord.NAMED) {
      return true;
    }
    // Evicted in between: the frame is nobody's, and waits for this reference to go.
    owners.wake(end(slot, SlotWord.FAILED));
    int _ = drop(slot);
    return false;
  }

  /** See {@link StripeSlabs#clear}. */
  boolean clear(int dead, boolean quarantine) {
    return frames.clear(dead, quarantine);
  }

  private long claimed(int slot) {
    references.claimed(slot);
    return Reservation.of(Reservation.CLAIMED, slot);
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

  /** Takes a reference away; {@link #ROOM} when nobody refers to the slot any more. */
  private int drop(int slot) {
    if (!references.remove(slot)) {
      return 0;
    }
    int frame = slot / shards;
    if (!frames.freeIfIdle(frame)) {
      table.touch(frame);
    }
    return ROOM;
  }

  private long noRoom() {
    return Reservation.of(Reservation.NO_ROOM, number);
  }
}
