package ucm.store.cache.shared;

import java.lang.invoke.VarHandle;

/**
 * The slabs of one stripe of a shared pool: which block is where. {@link SlabManager} gives and takes
 * them; what is here takes no lock.
 *
 * <p>The words of slabs and slots, and the ids of NAMED slabs, are the truth, each changed by one
 * compare-and-swap. The chains of slabs only help to find it fast. What is found is compared with the
 * id and the word looked at again, so changes meanwhile may hide a block and never show a wrong one; a
 * block not found while the stripe's version changed is looked for again, and in the end slab by slab.
 */
final class SlabTable {

  /** No slab. */
  static final int NONE = -1;

  /** A slab that was sought to be made is there meanwhile: find it. */
  static final int FOUND = -2;

  /** The end of a chain; what links to a slab is its number + 1, so that fresh memory is empty. */
  static final int END = 0;

  // Some hundred microseconds at the most, while a change takes one or two.
  private static final int FINDS = 64;
  private static final int SPINS = 100;

  private final SegmentWords words;
  private final SegmentLayout layout;
  private final int owner;
  private final int first;
  private final int last;
  private final int shards;
  private final int bucketMask;
  private final long bucketsAt;
  private final long stripeAt;

  /** A view of a stripe, for one of its owners. */
  SlabTable(SegmentWords words, SegmentLayout layout, int stripe, int owner) {
    this.words = words;
    this.layout = layout;
    this.owner = owner;
    this.first = layout.firstSlab(stripe);
    this.last = layout.firstSlab(stripe + 1);
    this.shards = layout.shards();
    this.bucketMask = layout.buckets() - 1;
    this.bucketsAt = layout.bucketsAt(stripe);
    this.stripeAt = layout.stripeAt(stripe);
  }

  /** The NAMED slab of a block, or {@link #NONE} when there was none at some moment of the search. */
  int find(long hash, long high, long low) {
    for (int attempt = 0; attempt < FINDS; attempt++) {
      long version = words.get(stripeAt + SegmentLayout.STRIPE_VERSION);
      int slab = walk(hash, high, low);
      VarHandle.acquireFence();
      boolean unchanged =
          (version & 1) == 0 && words.get(stripeAt + SegmentLayout.STRIPE_VERSION) == version;
      if (slab != NONE || unchanged) {
        return slab;
      }
      for (int spin = 0; spin < SPINS; spin++) {
        Thread.onSpinWait();
      }
    }
    // A holder of the lock was preempted or stopped, or rebuilds the chains: the words are true.
    int slab = first;
    while (slab < last && !holds(slab, high, low)) {
      slab++;
    }
    return slab < last ? slab : NONE;
  }

  /** Whether a slab is NAMED for a block at this moment. */
  boolean holds(int slab, long high, long low) {
    long at = layout.slabAt(slab);
    long word = words.get(at);
    return SlabWord.state(word) == SlabWord.NAMED
        && words.plain(at + SegmentLayout.SLAB_HIGH) == high
        && words.plain(at + SegmentLayout.SLAB_LOW) == low
        && isStill(at, word);
  }

  long word(int slab) {
    return words.get(layout.slabAt(slab));
  }

  /**
   * Makes this owner the one that dumps the block of a slab, if it still holds the block it held.
   *
   * @return false also when another owner dumps it
   */
  boolean markDumped(int slab, long seen) {
    long at = layout.slabAt(slab);
    int bit = 1 << owner;
    for (long word = words.get(at); SlabWord.sameBlock(word, seen); word = words.get(at)) {
      int dumpers = SlabWord.dumpers(word);
      if (dumpers != 0 && dumpers != bit) {
        return false;
      }
      if (dumpers == bit || words.swap(at, word, word | SlabWord.dumper(owner))) {
        return true;
      }
    }
    return false;
  }

  /**
   * Whether a block that was dumped is still on its way, as its slots say: some are to come, or are
   * referred to.
   *
   * @param whole whether this owner is about to dump all of it: what another one has begun and left, so
   *     that it has no references, is then on its way no more
   */
  boolean isBeingDumped(int slab, boolean whole) {
    long word = word(slab);
    int dumpers = SlabWord.dumpers(word);
    boolean isElsewhere = (dumpers & ~(1 << owner)) != 0;
    boolean mayRest = SlabWord.isComplete(word) || (whole && isElsewhere);
    return dumpers != 0 && !(mayRest && isIdle(slab));
  }

  /** Hides a slab's block from look-ups; references to its slots stay valid. */
  void orphan(int slab) {
    long at = layout.slabAt(slab);
    for (long word = words.get(at);
        SlabWord.state(word) == SlabWord.NAMED && !words.swap(at, word, SlabWord.orphaned(word));
        word = words.get(at)) {
      Thread.onSpinWait();
    }
  }

  /** Remembers that a slab is complete, if it is. */
  void noteComplete(int slab) {
    long at = layout.slabAt(slab);
    while (true) {
      long word = words.get(at);
      if (SlabWord.state(word) != SlabWord.NAMED
          || SlabWord.isComplete(word)
          || !areAllReady(slab)
          || words.swap(at, word, word | SlabWord.COMPLETE)) {
        return;
      }
    }
  }

  /** Says that a slab was used now; inexact, which only eviction notices. */
  void touch(int slab) {
    long stamp = 2 * words.plain(stripeAt + SegmentLayout.STRIPE_CLOCK) + 1;
    long at = layout.slabAt(slab) + SegmentLayout.SLAB_STAMP;
    if (words.plain(at) != stamp) {
      words.setPlain(at, stamp);
    }
  }

  /** Whether no slot of a slab has references. */
  boolean isIdle(int slab) {
    for (int slot = slab * shards; slot < (slab + 1) * shards; slot++) {
      if (SlotWord.owners(words.get(layout.slotWordAt(slot))) != 0) {
        return false;
      }
    }
    return true;
  }

  /** Looks for a block once; sure while the stripe does not change. */
  int walk(long hash, long high, long low) {
    int next = words.plainInt(bucketAt(hash));
    // Chains change under our feet: bounded, and every link checked.
    for (int step = first; next > first && next <= last && step <= last; step++) {
      int slab = next - 1;
      if (holds(slab, high, low)) {
        return slab;
      }
      next = words.plainInt(nextAt(slab));
    }
    return NONE;
  }

  private boolean isStill(long at, long word) {
    VarHandle.acquireFence();
    return SlabWord.sameBlock(words.get(at), word);
  }

  private boolean areAllReady(int slab) {
    // From the end: shards mostly come in order, so that one look is enough until the last.
    for (int slot = (slab + 1) * shards - 1; slot >= slab * shards; slot--) {
      if (SlotWord.state(words.get(layout.slotWordAt(slot))) != SlotWord.READY) {
        return false;
      }
    }
    return true;
  }

  /** Where the first link of a chain is. */
  long bucketAt(long hash) {
    return bucketsAt + (hash & bucketMask) * Integer.BYTES;
  }

  /** Where the link after a slab is. */
  long nextAt(int slab) {
    return layout.slabAt(slab) + SegmentLayout.SLAB_NEXT;
  }
}
