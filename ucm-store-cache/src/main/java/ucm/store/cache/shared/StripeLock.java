package ucm.store.cache.shared;

import java.util.concurrent.TimeUnit;
import ucm.platform.memory.Futex;

/**
 * The lock of one stripe of a shared pool, held for the moment in which blocks get and lose their
 * places.
 *
 * <pre>
 *  31            8   6      5       0
 * +---------------+--------+---------+
 * | incarnation   | waited | owner+1 |   0: free
 * +---------------+--------+---------+
 * </pre>
 *
 * <p>It says which owner holds it. One that waits in vain for a moment looks whether that owner lives
 * (its byte of the file is locked), and if not takes the lock over, as exactly one can: what the dead
 * one left half done is then the new holder's to repair, before it does anything else. If that one dies
 * as well, its successor takes over from a dead owner again, and repairs. So no process waits for a
 * dead one, or works on what a dead one left.
 *
 * <p>One that holds it and is stopped (SIGSTOP) lives; others give up after a second and act as if the
 * stripe had no room.
 */
public final class StripeLock {

  /** It could not be had in time. */
  static final int REFUSED = 0;

  /** It is held. */
  static final int HELD = 1;

  /** It is held, and taken over from an owner that died with it: repair the stripe. */
  static final int TAKEN_OVER = 2;

  private static final int OWNER_MASK = 0x3f;
  private static final int WAITED = 0x40;
  private static final int INCARNATION_SHIFT = 8;
  private static final int SPINS = 200;
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long GIVE_UP_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SegmentWords words;
  private final long at;
  private final SegmentOwners owners;
  private final int mine;

  StripeLock(SegmentWords words, long at, SegmentOwners owners) {
    this.words = words;
    this.at = at;
    this.owners = owners;
    this.mine = (owners.own() + 1) | (owners.incarnation() << INCARNATION_SHIFT);
  }

  /** Takes the lock; {@link #REFUSED}, {@link #HELD} or {@link #TAKEN_OVER}. Not reentrant. */
  public int lock() {
    for (int spin = 0; spin < SPINS; spin++) {
      if (words.getInt(at) == 0 && words.swapInt(at, 0, mine)) {
        return HELD;
      }
      Thread.onSpinWait();
    }
    long start = System.nanoTime();
    while (true) {
      int found = words.getInt(at);
      if (found == 0) {
        // Others may be asleep still: only a process that waited knows, and says so for all.
        if (words.swapInt(at, 0, mine | WAITED)) {
          return HELD;
        }
        continue;
      }
      if ((found & WAITED) == 0 && !words.swapInt(at, found, found | WAITED)) {
        continue;
      }
      int waited = found | WAITED;
      Futex.sleep(words.memory(), at, waited, POLL_NANOS);
      long passed = System.nanoTime() - start;
      if (passed >= POLL_NANOS
          && words.getInt(at) == waited
          && owners.isDead((waited & OWNER_MASK) - 1)
          && words.swapInt(at, waited, mine | WAITED)) {
        return TAKEN_OVER;
      }
      if (passed > GIVE_UP_NANOS) {
        return REFUSED;
      }
    }
  }

  /** Gives the lock back. */
  void unlock() {
    if ((words.exchangeInt(at, 0) & WAITED) != 0) {
      Futex.wake(words.memory(), at, 1);
    }
  }
}
