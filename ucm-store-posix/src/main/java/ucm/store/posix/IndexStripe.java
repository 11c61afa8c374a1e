package ucm.store.posix;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * A part of {@link BlockIndex}: a hash table with linear probing, 16 bytes a slot, high word first.
 *
 * <p>Writers hold the lock; readers hold none. A slot whose high word is 0 is free. A writer sets the
 * low word before the high word, and fills the hole of a removed id with the ids behind it, each
 * copied before its old place is used again. A reader beside it may therefore miss an id that is
 * being moved, or take for present an id that is made of halves of two others. The first is no harm
 * to whoever asks the disk then, or asks again with {@link #holds}; the second does not happen by
 * chance, as ids are hashes.
 */
final class IndexStripe {

  static final int SLOT_BYTES = 2 * Long.BYTES;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment table;
  private final long slots;
  private final int most;
  // Guarded by this.
  private int size;

  /**
   * An empty one.
   *
   * @param table zeros
   * @param most ids at the most; fewer than there are slots
   */
  IndexStripe(MemorySegment table, int most) {
    this.table = table;
    this.slots = table.byteSize() / SLOT_BYTES;
    this.most = most;
  }

  /** Mixes an id, so that ids that are no hashes are spread as well. */
  static long hash(long high, long low) {
    long mixed = (high ^ (low * 0x9e3779b97f4a7c15L)) * 0xbf58476d1ce4e5b9L;
    return mixed ^ (mixed >>> 32);
  }

  /** Whether an id is here, without a lock. */
  boolean mayHold(long hash, long high, long low) {
    MemorySegment words = table;
    long end = slots * SLOT_BYTES;
    long at = home(hash);
    while (true) {
      long found = (long) WORD.getAcquire(words, at);
      if (found == high && (long) WORD.getAcquire(words, at + Long.BYTES) == low) {
        return true;
      }
      if (found == 0) {
        return false;
      }
      at += SLOT_BYTES;
      if (at == end) {
        at = 0;
      }
    }
  }

  /** Whether an id is here, for certain. */
  synchronized boolean holds(long hash, long high, long low) {
    return mayHold(hash, high, low);
  }

  /**
   * Takes an id up. A full stripe forgets another one for it.
   *
   * @return whether another one was forgotten
   */
  synchronized boolean add(long hash, long high, long low) {
    long at = find(hash, high, low);
    if (high(at) != 0) {
      return false;
    }
    boolean full = size == most;
    if (full) {
      removeAt(firstTaken(home(hash)));
      at = find(hash, high, low);
    }
    WORD.set(table, at + Long.BYTES, low);
    WORD.setRelease(table, at, high);
    size++;
    return full;
  }

  /** Drops an id; returns whether it was here. */
  synchronized boolean remove(long hash, long high, long low) {
    long at = find(hash, high, low);
    boolean here = high(at) != 0;
    if (here) {
      removeAt(at);
    }
    return here;
  }

  synchronized int size() {
    return size;
  }

  /** The place of an id, or the free one where it belongs. */
  private long find(long hash, long high, long low) {
    long at = home(hash);
    while (high(at) != 0 && (high(at) != high || low(at) != low)) {
      at = next(at);
    }
    return at;
  }

  private long firstTaken(long from) {
    long at = from;
    while (high(at) == 0) {
      at = next(at);
    }
    return at;
  }

  private void removeAt(long at) {
    long hole = at;
    for (long from = next(hole); high(from) != 0; from = next(from)) {
      long high = high(from);
      long low = low(from);
      // An id may move into the hole unless that lies before its home.
      if (distance(home(hash(high, low)), from) >= distance(hole, from)) {
        WORD.set(table, hole + Long.BYTES, low);
        WORD.setRelease(table, hole, high);
        hole = from;
      }
    }
    WORD.setRelease(table, hole, 0L);
    size--;
  }

  private long distance(long from, long to) {
    return to >= from ? to - from : to - from + slots * SLOT_BYTES;
  }

  private long home(long hash) {
    return (((hash & 0xffff_ffffL) * slots) >>> 32) * SLOT_BYTES;
  }

  private long next(long at) {
    long next = at + SLOT_BYTES;
    return next == slots * SLOT_BYTES ? 0 : next;
  }

  private long high(long at) {
    return (long) WORD.get(table, at);
  }

  private long low(long at) {
    return (long) WORD.get(table, at + Long.BYTES);
  }
}
