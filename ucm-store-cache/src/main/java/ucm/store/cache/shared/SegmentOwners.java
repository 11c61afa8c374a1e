package ucm.store.cache.shared;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import ucm.api.StoreException;
import ucm.platform.memory.Futex;
import ucm.platform.memory.SharedFile;

/**
 * The processes (strictly: the open stores) that share a segment, and which of them live.
 *
 * <p>An owner holds a lock on a byte of the file for as long as it lives; the kernel drops it with the
 * process, however that ends. So an owner lives if and only if its byte is locked: no clock is asked, no
 * heartbeat can be late, and a reused process number, or one of another container, cannot be
 * mistaken for it. The table in the segment says what the owner was called; process numbers in it are
 * for people.
 *
 * <p>The process that takes the lock of a dead owner's byte clears up after it, one at a time; if that one dies
 * too, the next one begins again.
 */
final class SegmentOwners {

  static final int FREE = 0;
  static final int LIVE = 1;

  /** Dead; cleared up but for slots into which the kernel may still write for it. */
  static final int DEAD = 2;

  /**
   * How long slots that a dead owner was filling stay out of use: the last direct read of a disk, or
   * copy of a device, may be under way when the process it was for is gone.
   */
  static final long QUARANTINE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private static final long INCARNATIONS = 1 << 24;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long PATIENCE_NANOS = 2 * QUARANTINE_NANOS;
  // The process that clears up after a dead owner locks its byte, and looks like it meanwhile.
  private static final long CLEARING_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SharedFile file;
  private final SegmentWords words;
  private final SegmentLayout layout;
  private final int own;

  private SegmentOwners(SharedFile file, SegmentWords words, SegmentLayout layout, int own) {
    this.file = file;
    this.words = words;
    this.layout = layout;
    this.own = own;
  }

  /**
   * Enters this opening of the file into the table. The caller holds the gate. Waits only for the
   * places of owners that have died or are leaving.
   *
   * @throws StoreException when the table is full
   */
  static SegmentOwners enter(SharedFile file, SegmentWords words, SegmentLayout layout) {
    long start = System.nanoTime();
    long patience = CLEARING_NANOS;
    while (true) {
      for (int owner = 0; owner < SegmentLayout.OWNERS; owner++) {
        if (tryEnter(file, words, layout, owner)) {
          return new SegmentOwners(file, words, layout, owner);
        }
      }
      // Places of the dead come free when those who live have cleared up after them.
      if (!allLive(file, words, layout)) {
        patience = PATIENCE_NANOS;
      }
      if (System.nanoTime() - start > patience || Thread.currentThread().isInterrupted()) {
        throw new StoreException(
            "Cache cannot share the buffer "
                + file.path()
                + ": "
                + SegmentLayout.OWNERS
                + " workers share it already, and there is no place for more; set"
                + " share_buffer_enable to false for some, or give them another unique_id");
      }
      LockSupport.parkNanos(RETRY_NANOS);
    }
  }

  private static boolean allLive(SharedFile file, SegmentWords words, SegmentLayout layout) {
    for (int owner = 0; owner < SegmentLayout.OWNERS; owner++) {
      if (words.getInt(layout.ownerAt(owner) + SegmentLayout.OWNER_STATE) != LIVE
          || !file.isLockedElsewhere(SegmentLayout.OWNER_LOCK + owner, 1)) {
        return false;
      }
    }
    return true;
  }

  private static boolean tryEnter(
      SharedFile file, SegmentWords words, SegmentLayout layout, int owner) {
    long at = layout.ownerAt(owner);
    long lock = SegmentLayout.OWNER_LOCK + owner;
    if (words.getInt(at + SegmentLayout.OWNER_STATE) != FREE || !file.tryLock(lock)) {
      return false;
    }
    if (words.getInt(at + SegmentLayout.OWNER_STATE) != FREE) {
      file.unlock(lock);
      return false;
    }
    long incarnation = words.get(at + SegmentLayout.OWNER_INCARNATION) + 1;
    words.set(at + SegmentLayout.OWNER_INCARNATION, incarnation % INCARNATIONS);
    words.set(at + SegmentLayout.OWNER_PID, ProcessHandle.current().pid());
    words.setInt(at + SegmentLayout.OWNER_STATE, LIVE);
    return true;
  }

  /** This owner's number. */
  int own() {
    return own;
  }

  /** How often this owner's place has been taken, modulo 2^24. */
  int incarnation() {
    return (int) words.get(at(own) + SegmentLayout.OWNER_INCARNATION);
  }

  /** Leaves the table; nothing in the segment refers to this owner any more. */
  void leave() {
    words.clearBits(SegmentLayout.WANTING_AT, 1L << own);
    words.setInt(at(own) + SegmentLayout.OWNER_STATE, FREE);
  }

  /** Whether an owner that was there has died. */
  boolean isDead(int owner) {
    return owner != own && !file.isLockedElsewhere(SegmentLayout.OWNER_LOCK + owner, 1);
  }

  /**
   * Whether an owner has died and this one should clear up after it, which no other process does until
   * {@link #cleared}.
   */
  boolean tryClear(int owner) {
    long lock = SegmentLayout.OWNER_LOCK + owner;
    if (owner == own || !isDue(owner) || !file.tryLock(lock)) {
      return false;
    }
    if (isDue(owner)) {
      return true;
    }
    file.unlock(lock);
    return false;
  }

  /** Whether slots of a dead owner have been out of use for long enough. */
  boolean isPastQuarantine(int owner) {
    long since = words.get(at(owner) + SegmentLayout.OWNER_DEAD_SINCE);
    return words.getInt(at(owner) + SegmentLayout.OWNER_STATE) == DEAD
        && System.nanoTime() - since > QUARANTINE_NANOS;
  }

  /**
   * Ends what {@link #tryClear} began.
   *
   * @param quarantined whether slots stay out of use for a while
   */
  void cleared(int owner, boolean quarantined) {
    words.clearBits(SegmentLayout.WANTING_AT, 1L << owner);
    if (!quarantined) {
      words.setInt(at(owner) + SegmentLayout.OWNER_STATE, FREE);
    } else if (words.getInt(at(owner) + SegmentLayout.OWNER_STATE) == LIVE) {
      words.set(at(owner) + SegmentLayout.OWNER_DEAD_SINCE, System.nanoTime());
      words.setInt(at(owner) + SegmentLayout.OWNER_STATE, DEAD);
    }
    file.unlock(SegmentLayout.OWNER_LOCK + owner);
  }

  /** The process of an owner, for messages. */
  long pid(int owner) {
    return words.get(at(owner) + SegmentLayout.OWNER_PID);
  }

  /** Says whether this owner wants slots; the others {@linkplain #wanting look} when one comes free. */
  void setWanting(boolean wants) {
    if (wants) {
      words.setBits(SegmentLayout.WANTING_AT, 1L << own);
    } else {
      words.clearBits(SegmentLayout.WANTING_AT, 1L << own);
    }
  }

  /** The other owners that want slots, bit by bit. */
  int wanting() {
    return (int) words.get(SegmentLayout.WANTING_AT) & ~(1 << own);
  }

  /** Has owners, bit by bit, look at what has changed. */
  void wake(int owners) {
    for (int left = owners; left != 0; left &= left - 1) {
      wakeOne(Integer.numberOfTrailingZeros(left));
    }
  }

  /** Has all owners look at what has changed, this one too. */
  void wakeAll() {
    for (int owner = 0; owner < SegmentLayout.OWNERS; owner++) {
      if (words.getInt(at(owner) + SegmentLayout.OWNER_STATE) == LIVE) {
        wakeOne(owner);
      }
    }
  }

  /** The number of the last event of this owner. */
  int event() {
    return words.getInt(at(own) + SegmentLayout.OWNER_EVENT);
  }

  /** Sleeps until there is an event after the one seen, at most for so long. */
  void awaitEvent(int seen, long nanos) {
    Futex.sleep(words.memory(), at(own) + SegmentLayout.OWNER_EVENT, seen, nanos);
  }

  private void wakeOne(int owner) {
    long event = at(owner) + SegmentLayout.OWNER_EVENT;
    words.incrementInt(event);
    Futex.wake(words.memory(), event, 1);
  }

  private boolean isDue(int owner) {
    int state = words.getInt(at(owner) + SegmentLayout.OWNER_STATE);
    return state == LIVE || isPastQuarantine(owner);
  }

  private long at(int owner) {
    return layout.ownerAt(owner);
  }
}
