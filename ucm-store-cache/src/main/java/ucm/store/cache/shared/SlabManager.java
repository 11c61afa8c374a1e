package ucm.store.cache.shared;

import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreMetrics;
import ucm.store.cache.eviction.BlockTable;

/**
 * Gives the slabs of one stripe of a shared pool to blocks, and takes them back. All of it is done by
 * the holder of the stripe's {@linkplain StripeLock lock}, with the stripe's version odd meanwhile.
 *
 * <p>The order of writes is such that a process that dies at any instruction leaves words that are true:
 * a slab is NAMED after its id is written and its first slot reserved, and is an ORPHAN before its
 * slots are emptied. Chains and the free list may be broken by then; {@link #repair} rebuilds them from the words, and may
 * itself be begun again.
 *
 * <p>Eviction is by least recent use, judged by a sample of {@value #SAMPLE} slabs (all of them in a
 * stripe of up to {@value #SMALL}): an exact order is a list that every hit of every process would have
 * to lock. Only a slab whose slots have no references is evicted.
 */
final class SlabManager {

  private static final int NONE = SlabTable.NONE;
  private static final int END = SlabTable.END;
  private static final int SAMPLE = 16;
  private static final int SMALL = 64;
  private static final int ATTEMPTS = 4;

  private final SegmentWords words;
  private final SegmentLayout layout;
  private final SlabTable table;
  private final StoreMetrics.Counter evictions;
  private final int owner;
  private final int first;
  private final int last;
  private final int shards;
  private final long stripeAt;

  /**
   * A view of a stripe.
   *
   * @param owner this process
   * @param evictions counts the shards this process evicts
   */
  SlabManager(
      SegmentWords words,
      SegmentLayout layout,
      int stripe,
      int owner,
      StoreMetrics.Counter evictions) {
    this.words = words;
    this.layout = layout;
    this.table = new SlabTable(words, layout, stripe, owner);
    this.owner = owner;
    this.evictions = evictions;
    this.first = layout.firstSlab(stripe);
    this.last = layout.firstSlab(stripe + 1);
    this.shards = layout.shards();
    this.stripeAt = layout.stripeAt(stripe);
  }

  /** Makes all slabs of a stripe of a new segment free; before another process sees it. */
  static void format(SegmentWords words, SegmentLayout layout, int stripe) {
    new SlabManager(words, layout, stripe, 0, _ -> {}).rebuild();
  }

  /**
   * Makes a place for a block that has none, with one slot reserved.
   *
   * @param state LOADING or DUMPING
   * @param dumpers of the slab
   * @return the slab, or {@link #NONE} when slots of all slabs are referred to
   */
  int take(long hash, long high, long low, int shard, int state, long dumpers) {
    begin();
    int slab = freeSlab();
    if (slab != NONE) {
      reserve(slab * shards + shard, state);
      long at = layout.slabAt(slab);
      words.setPlain(at + SegmentLayout.SLAB_HIGH, high);
      words.setPlain(at + SegmentLayout.SLAB_LOW, low);
      long clock = words.plain(stripeAt + SegmentLayout.STRIPE_CLOCK) + 1;
      words.setPlain(stripeAt + SegmentLayout.STRIPE_CLOCK, clock);
      words.setPlain(at + SegmentLayout.SLAB_STAMP, 2 * clock);
      words.set(at, SlabWord.named(words.get(at), dumpers));
      link(slab, hash);
    }
    end();
    return slab;
  }

  /** Takes a slab that look-ups do not find, with its first slot reserved; or {@link #NONE}. */
  int takeUnnamed() {
    begin();
    int slab = freeSlab();
    if (slab != NONE) {
      reserve(slab * shards, SlotWord.LOADING);
      long at = layout.slabAt(slab);
      words.set(at, SlabWord.orphaned(words.get(at)));
    }
    end();
    return slab;
  }

  /** Frees a slab if it is an orphan whose slots have no references; whether it did. */
  boolean freeOrphan(int slab) {
    begin();
    boolean free = SlabWord.state(table.word(slab)) == SlabWord.ORPHAN && recycle(slab);
    if (free) {
      pushFree(slab);
    }
    end();
    return free;
  }

  /**
   * Rebuilds everything from the words, and takes dead owners out of them.
   *
   * @param dead owners that died, bit by bit
   * @param quarantine whether slots that a dead owner was filling keep its bit
   * @return whether some slot did
   */
  boolean repair(int dead, boolean quarantine) {
    begin();
    boolean kept = false;
    for (int slab = first; dead != 0 && slab < last; slab++) {
      if ((SlabWord.dumpers(table.word(slab)) & dead) != 0) {
        // Its only whole copy may be this one, and no process is left to write it to the next
        // stage.
        table.orphan(slab);
      }
      for (int slot = slab * shards; slot < (slab + 1) * shards; slot++) {
        kept |= forget(slab, slot, dead, quarantine);
      }
    }
    rebuild();
    end();
    return kept;
  }

  private boolean forget(int slab, int slot, int dead, boolean quarantine) {
    long at = layout.slotWordAt(slot);
    while (true) {
      long word = words.get(at);
      int owners = SlotWord.owners(word) & dead;
      if (owners == 0) {
        return false;
      }
      boolean filler = (dead >>> SlotWord.filler(word) & 1) != 0;
      boolean filling = filler && SlotWord.isFilling(word);
      boolean written = filling || (filler && SlotWord.state(word) == SlotWord.FAILED);
      long next = filling ? SlotWord.withState(word, SlotWord.FAILED) : word;
      if (!(written && quarantine)) {
        next &= ~((long) owners << Integer.SIZE);
      }
      if (filling) {
        table.orphan(slab);
      }
      if (next == word || words.swap(at, word, next)) {
        return written && quarantine;
      }
    }
  }

  private void rebuild() {
    for (int bucket = 0; bucket < layout.buckets(); bucket++) {
      words.setPlainInt(table.bucketAt(bucket), END);
    }
    words.setPlainInt(stripeAt + SegmentLayout.STRIPE_FREE, END);
    // Backwards, so that slabs are given out in the order of memory.
    for (int slab = last - 1; slab >= first; slab--) {
      int state = SlabWord.state(table.word(slab));
      if (state == SlabWord.NAMED) {
        long at = layout.slabAt(slab);
        link(
            slab,
            BlockTable.hash(
                words.plain(at + SegmentLayout.SLAB_HIGH),
                words.plain(at + SegmentLayout.SLAB_LOW)));
        table.noteComplete(slab);
      } else if (recycle(slab)) {
        pushFree(slab);
      }
    }
  }

  private int freeSlab() {
    int free = words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE);
    if (free != END) {
      words.setPlainInt(
          stripeAt + SegmentLayout.STRIPE_FREE, words.plainInt(table.nextAt(free - 1)));
      return free - 1;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      int slab = victim();
      if (slab == NONE) {
        return NONE;
      }
      long before = table.word(slab);
      int lost = SlabWord.state(before) == SlabWord.NAMED ? readySlots(slab) : 0;
      table.orphan(slab);
      if (recycle(slab)) {
        if (lost > 0) {
          evictions.add(lost);
        }
        return slab;
      }
    }
    return NONE;
  }

  private int victim() {
    int count = last - first;
    int best = NONE;
    long oldest = Long.MAX_VALUE;
    boolean small = count <= SMALL;
    for (int i = 0; i < (small ? count : SAMPLE); i++) {
      int slab = first + (small ? i : ThreadLocalRandom.current().nextInt(count));
      long stamp =
          SlabWord.state(table.word(slab)) == SlabWord.ORPHAN
              ? -1
              : words.plain(layout.slabAt(slab) + SegmentLayout.SLAB_STAMP);
      if (stamp < oldest && table.isIdle(slab)) {
        best = slab;
        oldest = stamp;
      }
    }
    for (int slab = first; slab < last && best == NONE && !small; slab++) {
      best = table.isIdle(slab) ? slab : NONE;
    }
    return best;
  }

  /** Empties the slots of a slab that is not NAMED; false when one has references. */
  private boolean recycle(int slab) {
    unlink(slab);
    for (int slot = slab * shards; slot < (slab + 1) * shards; slot++) {
      long at = layout.slotWordAt(slot);
      long word = words.get(at);
      while (SlotWord.owners(word) == 0 && !words.swap(at, word, SlotWord.recycled(word))) {
        word = words.get(at);
      }
      if (SlotWord.owners(word) != 0) {
        return false;
      }
    }
    long at = layout.slabAt(slab);
    words.set(at, SlabWord.freed(words.get(at)));
    return true;
  }

  private void reserve(int slot, int state) {
    long at = layout.slotWordAt(slot);
    words.set(at, SlotWord.reserved(words.get(at), owner, state));
  }

  private void link(int slab, long hash) {
    long bucket = table.bucketAt(hash);
    words.setPlainInt(table.nextAt(slab), words.plainInt(bucket));
    words.setInt(bucket, slab + 1);
  }

  private void unlink(int slab) {
    long at = layout.slabAt(slab);
    long link =
        table.bucketAt(
            BlockTable.hash(
                words.plain(at + SegmentLayout.SLAB_HIGH),
                words.plain(at + SegmentLayout.SLAB_LOW)));
    int next = words.plainInt(link);
    for (int step = first; next != END && step <= last; step++) {
      if (next == slab + 1) {
        words.setInt(link, words.plainInt(table.nextAt(slab)));
        return;
      }
      link = table.nextAt(next - 1);
      next = words.plainInt(link);
    }
  }

  private void pushFree(int slab) {
    words.setPlainInt(table.nextAt(slab), words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE));
    words.setPlainInt(stripeAt + SegmentLayout.STRIPE_FREE, slab + 1);
  }

  private void begin() {
    long at = stripeAt + SegmentLayout.STRIPE_VERSION;
    // Odd already when the last holder died.
    words.set(at, words.get(at) | 1);
  }

  private void end() {
    long at = stripeAt + SegmentLayout.STRIPE_VERSION;
    words.set(at, words.get(at) + 1);
  }

  private int readySlots(int slab) {
    int count = 0;
    for (int slot = slab * shards; slot < (slab + 1) * shards; slot++) {
      count += SlotWord.state(words.get(layout.slotWordAt(slot))) == SlotWord.READY ? 1 : 0;
    }
    return count;
  }
}
