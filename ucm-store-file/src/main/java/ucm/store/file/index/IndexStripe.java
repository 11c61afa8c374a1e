package ucm.store.file.index;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.function.LongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.memory.LazyMemory;

/**
 * A part of {@link BlockIndex}: a hash table with linear probing, 16 bytes a slot, high word first. It
 * becomes twice as large when two thirds of it are taken, so that few ids take few pages of memory.
 *
 * <p>Writers hold the lock; readers hold none. A slot whose high word is 0 is free. A writer sets the
 * low word before the high word, and fills the hole of a removed id with the ids after it, each
 * copied before its old slot is used again. A reader beside it may therefore miss an id that is
 * being moved, or one that comes while the table grows, or take for present an id that is made of halves
 * of two others. The first two do no harm where the caller asks the disk then, or asks again with {@link
 * #holds}; the third does not happen by chance, as ids are hashes.
 */
final class IndexStripe {

  private static final Logger LOG = LoggerFactory.getLogger(IndexStripe.class);
  private static final int SLOT_BYTES = 2 * Long.BYTES;
  private static final long FIRST_SLOTS = 1 << 10;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final LongFunction<MemorySegment> memory;
  // Two thirds full at the most; more than one free slot ends every search.
  private final long maxSlots;
  // Written under the lock of this. One that was outgrown lives while a reader uses it.
  private volatile MemorySegment table;
  // Guarded by this.
  private int most;
  private int size;
  // Written under the lock of this.
  private volatile long removals;

  /**
   * An empty one.
   *
   * @param most ids at the most
   * @throws FileException when the kernel gives no memory
   */
  IndexStripe(int most) {
    this(most, LazyMemory::zeros);
  }

  /** One that takes its memory, given in bytes, from elsewhere. */
  IndexStripe(int most, LongFunction<MemorySegment> memory) {
    this.most = most;
    this.memory = memory;
    this.maxSlots = most + most / 2 + 2L;
    this.table = memory.apply(Math.min(maxSlots, FIRST_SLOTS) * SLOT_BYTES);
  }

  /** Mixes an id, so that ids that are no hashes are spread as well. */
  static long hash(long high, long low) {
    long mixed = (high ^ (low * 0x9e3779b97f4a7c15L)) * 0xbf58476d1ce4e5b9L;
    return mixed ^ (mixed >>> 32);
  }

  /** Whether an id is here, without a lock. */
  boolean mayHold(long hash, long high, long low) {
    MemorySegment words = table;
    long end = words.byteSize();
    long at = home(words, hash);
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
    if (high(table, find(table, hash, high, low)) != 0) {
      return false;
    }
    boolean full = size == most || !hasRoom();
    if (full) {
      removeAt(table, firstTaken(table, home(table, hash)));
    }
    put(table, hash, high, low);
    size++;
    return full;
  }

  /** Drops an id; returns whether it was here. */
  synchronized boolean remove(long hash, long high, long low) {
    // Whether it was here or not: a thread may be about to add it. Only the lock's holder writes.
    removals = removals + 1;
    long at = find(table, hash, high, low);
    boolean here = high(table, at) != 0;
    if (here) {
      removeAt(table, at);
    }
    return here;
  }

  /** How often an id was dropped, or was to be. */
  long removals() {
    return removals;
  }

  synchronized int size() {
    return size;
  }

  /** Bytes of its table. */
  long byteSize() {
    return table.byteSize();
  }

  /** Makes room for one id more; false when the kernel gives none. */
  private boolean hasRoom() {
    long slots = table.byteSize() / SLOT_BYTES;
    if (slots == maxSlots || size < slots - slots / 3) {
      return true;
    }
    MemorySegment larger;
    try {
      larger = memory.apply(Math.min(maxSlots, 2 * slots) * SLOT_BYTES);
    } catch (FileException e) {
      LOG.warn("the index of known blocks stays at {} bytes: {}", table.byteSize(), e.getMessage());
      most = size;
      return false;
    }
    for (long at = 0; at < table.byteSize(); at += SLOT_BYTES) {
      long high = high(table, at);
      if (high != 0) {
        long low = low(table, at);
        put(larger, hash(high, low), high, low);
      }
    }
    table = larger;
    return true;
  }

  private static void put(MemorySegment words, long hash, long high, long low) {
    long at = find(words, hash, high, low);
    WORD.set(words, at + Long.BYTES, low);
    WORD.setRelease(words, at, high);
  }

  /** The slot of an id, or the free one where it belongs. */
  private static long find(MemorySegment words, long hash, long high, long low) {
    long at = home(words, hash);
    while (high(words, at) != 0 && (high(words, at) != high || low(words, at) != low)) {
      at = next(words, at);
    }
    return at;
  }

  private static long firstTaken(MemorySegment words, long from) {
    long at = from;
    while (high(words, at) == 0) {
      at = next(words, at);
    }
    return at;
  }

  private void removeAt(MemorySegment words, long at) {
    long hole = at;
    for (long from = next(words, hole); high(words, from) != 0; from = next(words, from)) {
      long high = high(words, from);
      long low = low(words, from);
      // An id may move into the hole unless that lies before its home.
      if (distance(words, home(words, hash(high, low)), from) >= distance(words, hole, from)) {
        WORD.set(words, hole + Long.BYTES, low);
        WORD.setRelease(words, hole, high);
        hole = from;
      }
    }
    WORD.setRelease(words, hole, 0L);
    size--;
  }

  private static long distance(MemorySegment words, long from, long to) {
    return to >= from ? to - from : to - from + words.byteSize();
  }

  private static long home(MemorySegment words, long hash) {
    return (((hash & 0xffff_ffffL) * (words.byteSize() / SLOT_BYTES)) >>> 32) * SLOT_BYTES;
  }

  private static long next(MemorySegment words, long at) {
    long next = at + SLOT_BYTES;
    return next == words.byteSize() ? 0 : next;
  }

  private static long high(MemorySegment words, long at) {
    return (long) WORD.get(words, at);
  }

  private static long low(MemorySegment words, long at) {
    return (long) WORD.get(words, at + Long.BYTES);
  }
}
