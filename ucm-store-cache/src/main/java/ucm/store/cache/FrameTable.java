package ucm.store.cache;

import java.lang.invoke.VarHandle;
import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreMetrics;

/**
 * The frames of one stripe of a shared pool: which block is where, and which goes when one comes.
 *
 * <p>The words of frames and slots, and the ids of NAMED frames, are the truth, each changed by one
 * compare-and-swap. Chains, free list and the {@code complete} flags only help to find it fast; they are
 * changed under the stripe's lock, with the stripe's version odd meanwhile, and made anew from the words
 * by {@link #repair}. So whoever dies at whatever instruction leaves nothing that cannot be repaired.
 *
 * <p>Finding takes no lock. What is found is compared with the id and the word looked at again, so
 * changes meanwhile may hide a block and never show a wrong one; a block not found while the version
 * changed is looked for again.
 *
 * <p>Eviction is by least recent use, judged by a sample of {@value #SAMPLE} frames (all of them in a
 * stripe of up to {@value #SMALL}): an exact order is a list that every hit of every process would have to lock. Only a
 * frame none of whose slots anybody refers to is evicted.
 */
final class FrameTable {

  static final int NONE = -1;

  private static final int SAMPLE = 16;
  private static final int SMALL = 64;
  private static final int ATTEMPTS = 4;
  // Some hundred microseconds at the most, while a change takes one or two.
  private static final int FINDS = 64;
  private static final int SPINS = 100;
  // In links 0 is the end, so that fresh memory is empty chains.
  private static final int END = 0;

  private final SegmentWords words;
  private final SegmentLayout layout;
  private final StoreMetrics.Counter evictions;
  private final int owner;
  private final int first;
  private final int last;
  private final int shards;
  private final int bucketMask;
  private final long bucketsAt;
  private final long stripeAt;

  /**
   * A view of a stripe.
   *
   * @param owner this process
   * @param evictions counts the shards this process evicts
   */
  FrameTable(
      SegmentWords words,
      SegmentLayout layout,
      int stripe,
      int owner,
      StoreMetrics.Counter evictions) {
    this.words = words;
    this.layout = layout;
    this.owner = owner;
    this.evictions = evictions;
    this.first = layout.firstFrame(stripe);
    this.last = layout.firstFrame(stripe + 1);
    this.shards = layout.shards();
    this.bucketMask = layout.buckets() - 1;
    this.bucketsAt = layout.bucketsAt(stripe);
    this.stripeAt = layout.stripeAt(stripe);
  }

  /** Makes all frames of a stripe of a new segment free; before anybody else sees it. */
  static void format(SegmentWords words, SegmentLayout layout, int stripe) {
    new FrameTable(words, layout, stripe, 0, _ -> {}).rebuild();
  }

  /** The NAMED frame of a block, or {@link #NONE}: also when that cannot be told without the lock. */
  int find(long hash, long high, long low) {
    for (int attempt = 0; attempt < FINDS; attempt++) {
      long version = words.get(stripeAt + SegmentLayout.STRIPE_VERSION);
      int frame = walk(hash, high, low);
      VarHandle.acquireFence();
      boolean unchanged =
          (version & 1) == 0 && words.get(stripeAt + SegmentLayout.STRIPE_VERSION) == version;
      if (frame != NONE || unchanged) {
        return frame;
      }
      for (int spin = 0; spin < SPINS; spin++) {
        Thread.onSpinWait();
      }
    }
    return NONE;
  }

  /** Whether a frame is NAMED for a block at this moment. */
  boolean holds(int frame, long high, long low) {
    long at = layout.frameAt(frame);
    long word = words.get(at);
    return FrameWord.state(word) == FrameWord.NAMED
        && words.plain(at + SegmentLayout.FRAME_HIGH) == high
        && words.plain(at + SegmentLayout.FRAME_LOW) == low
        && isStill(at, word);
  }

  long word(int frame) {
    return words.get(layout.frameAt(frame));
  }

  /** Adds this owner to the dumpers of a frame, if it still holds the block it held. */
  boolean markDumped(int frame, long seen) {
    long at = layout.frameAt(frame);
    long bit = FrameWord.dumper(owner);
    for (long word = words.get(at); FrameWord.sameBlock(word, seen); word = words.get(at)) {
      if ((word & bit) != 0 || words.swap(at, word, word | bit)) {
        return true;
      }
    }
    return false;
  }

  /** Has nobody find a frame's block any more; whoever refers to its slots keeps them. */
  void orphan(int frame) {
    long at = layout.frameAt(frame);
    for (long word = words.get(at);
        FrameWord.state(word) == FrameWord.NAMED && !words.swap(at, word, FrameWord.orphaned(word));
        word = words.get(at)) {
      Thread.onSpinWait();
    }
  }

  /** Remembers that a frame is complete, if it is. */
  void noteComplete(int frame) {
    long at = layout.frameAt(frame);
    while (true) {
      long word = words.get(at);
      if (FrameWord.state(word) != FrameWord.NAMED
          || FrameWord.isComplete(word)
          || !areAllReady(frame)
          || words.swap(at, word, word | FrameWord.COMPLETE)) {
        return;
      }
    }
  }

  /** Says that a frame was used now; inexact, which only eviction notices. */
  void touch(int frame) {
    long stamp = 2 * words.plain(stripeAt + SegmentLayout.STRIPE_CLOCK) + 1;
    long at = layout.frameAt(frame) + SegmentLayout.FRAME_STAMP;
    if (words.plain(at) != stamp) {
      words.setPlain(at, stamp);
    }
  }

  /** Whether nobody refers to a slot of a frame. */
  boolean isIdle(int frame) {
    for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
      if (SlotWord.owners(words.get(layout.slotWordAt(slot))) != 0) {
        return false;
      }
    }
    return true;
  }

  // ---- under the stripe's lock

  /**
   * Makes a place for a block that has none, with one slot claimed.
   *
   * @param state LOADING or DUMPING
   * @param dumpers of the frame
   * @return the frame, or {@link #NONE} when slots of all frames are referred to
   */
  int take(long hash, long high, long low, int shard, int state, long dumpers) {
    begin();
    int frame = freeFrame();
    if (frame != NONE) {
      claim(frame * shards + shard, state);
      long at = layout.frameAt(frame);
      words.setPlain(at + SegmentLayout.FRAME_HIGH, high);
      words.setPlain(at + SegmentLayout.FRAME_LOW, low);
      long clock = words.plain(stripeAt + SegmentLayout.STRIPE_CLOCK) + 1;
      words.setPlain(stripeAt + SegmentLayout.STRIPE_CLOCK, clock);
      words.setPlain(at + SegmentLayout.FRAME_STAMP, 2 * clock);
      words.set(at, FrameWord.named(words.get(at), dumpers));
      link(frame, hash);
    }
    end();
    return frame;
  }

  /** Makes a place that nobody finds, with its first slot claimed; or {@link #NONE}. */
  int takeUnnamed() {
    begin();
    int frame = freeFrame();
    if (frame != NONE) {
      claim(frame * shards, SlotWord.LOADING);
      long at = layout.frameAt(frame);
      words.set(at, FrameWord.orphaned(words.get(at)));
    }
    end();
    return frame;
  }

  /** Frees an orphaned frame if nobody refers to its slots. */
  void freeOrphan(int frame) {
    begin();
    if (FrameWord.state(word(frame)) == FrameWord.ORPHAN && recycle(frame)) {
      pushFree(frame);
    }
    end();
  }

  /**
   * Makes everything anew from the words, and takes dead owners out of them.
   *
   * @param dead owners that died, bit by bit
   * @param keepReads whether slots that a dead owner was reading into keep its bit
   * @return whether some slot did
   */
  boolean repair(int dead, boolean keepReads) {
    begin();
    boolean kept = false;
    for (int frame = first; dead != 0 && frame < last; frame++) {
      if ((FrameWord.dumpers(word(frame)) & dead) != 0) {
        // Its only whole copy may be this one, and nobody is left to write it to the stage behind.
        orphan(frame);
      }
      for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
        kept |= forget(frame, slot, dead, keepReads);
      }
    }
    rebuild();
    end();
    return kept;
  }

  private boolean forget(int frame, int slot, int dead, boolean keepReads) {
    long at = layout.slotWordAt(slot);
    while (true) {
      long word = words.get(at);
      int owners = SlotWord.owners(word) & dead;
      if (owners == 0) {
        return false;
      }
      boolean filler = (dead >>> SlotWord.filler(word) & 1) != 0;
      boolean filling = filler && SlotWord.isFilling(word);
      boolean read =
          filler
              && (SlotWord.state(word) == SlotWord.LOADING
                  || SlotWord.state(word) == SlotWord.FAILED);
      long next = filling ? SlotWord.withState(word, SlotWord.FAILED) : word;
      if (!(read && keepReads)) {
        next &= ~((long) owners << Integer.SIZE);
      }
      if (filling) {
        orphan(frame);
      }
      if (next == word || words.swap(at, word, next)) {
        return read && keepReads;
      }
    }
  }

  private void rebuild() {
    for (int bucket = 0; bucket <= bucketMask; bucket++) {
      words.setPlainInt(bucketsAt + (long) bucket * Integer.BYTES, END);
    }
    words.setPlainInt(stripeAt + SegmentLayout.STRIPE_FREE, END);
    // Backwards, so that frames are given out in the order of memory.
    for (int frame = last - 1; frame >= first; frame--) {
      int state = FrameWord.state(word(frame));
      if (state == FrameWord.NAMED) {
        long at = layout.frameAt(frame);
        link(
            frame,
            BlockTable.hash(
                words.plain(at + SegmentLayout.FRAME_HIGH),
                words.plain(at + SegmentLayout.FRAME_LOW)));
        noteComplete(frame);
      } else if (recycle(frame)) {
        pushFree(frame);
      }
    }
  }

  private int freeFrame() {
    int free = words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE);
    if (free != END) {
      words.setPlainInt(stripeAt + SegmentLayout.STRIPE_FREE, words.plainInt(nextAt(free - 1)));
      return free - 1;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      int frame = victim();
      if (frame == NONE) {
        return NONE;
      }
      long before = word(frame);
      int lost = FrameWord.state(before) == FrameWord.NAMED ? readySlots(frame) : 0;
      orphan(frame);
      if (recycle(frame)) {
        if (lost > 0) {
          evictions.add(lost);
        }
        return frame;
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
      int frame = first + (small ? i : ThreadLocalRandom.current().nextInt(count));
      long stamp =
          FrameWord.state(word(frame)) == FrameWord.ORPHAN
              ? -1
              : words.plain(layout.frameAt(frame) + SegmentLayout.FRAME_STAMP);
      if (stamp < oldest && isIdle(frame)) {
        best = frame;
        oldest = stamp;
      }
    }
    for (int frame = first; frame < last && best == NONE && !small; frame++) {
      best = isIdle(frame) ? frame : NONE;
    }
    return best;
  }

  /** Empties the slots of a frame that is not NAMED; false when somebody refers to one. */
  private boolean recycle(int frame) {
    unlink(frame);
    for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
      long at = layout.slotWordAt(slot);
      long word = words.get(at);
      while (SlotWord.owners(word) == 0 && !words.swap(at, word, SlotWord.recycled(word))) {
        word = words.get(at);
      }
      if (SlotWord.owners(word) != 0) {
        return false;
      }
    }
    long at = layout.frameAt(frame);
    words.set(at, FrameWord.freed(words.get(at)));
    return true;
  }

  private void claim(int slot, int state) {
    long at = layout.slotWordAt(slot);
    words.set(at, SlotWord.claimed(words.get(at), owner, state));
  }

  private void link(int frame, long hash) {
    long bucket = bucketAt(hash);
    words.setPlainInt(nextAt(frame), words.plainInt(bucket));
    words.setInt(bucket, frame + 1);
  }

  private void unlink(int frame) {
    long at = layout.frameAt(frame);
    long link =
        bucketAt(
            BlockTable.hash(
                words.plain(at + SegmentLayout.FRAME_HIGH),
                words.plain(at + SegmentLayout.FRAME_LOW)));
    int next = words.plainInt(link);
    for (int step = first; next != END && step <= last; step++) {
      if (next == frame + 1) {
        words.setInt(link, words.plainInt(nextAt(frame)));
        return;
      }
      link = nextAt(next - 1);
      next = words.plainInt(link);
    }
  }

  private void pushFree(int frame) {
    words.setPlainInt(nextAt(frame), words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE));
    words.setPlainInt(stripeAt + SegmentLayout.STRIPE_FREE, frame + 1);
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

  // ---- reading

  private int walk(long hash, long high, long low) {
    int next = words.plainInt(bucketAt(hash));
    // Chains change under our feet: bounded, and every link checked.
    for (int step = first; next > first && next <= last && step <= last; step++) {
      int frame = next - 1;
      if (holds(frame, high, low)) {
        return frame;
      }
      next = words.plainInt(nextAt(frame));
    }
    return NONE;
  }

  private boolean isStill(long at, long word) {
    VarHandle.acquireFence();
    return FrameWord.sameBlock(words.get(at), word);
  }

  private boolean areAllReady(int frame) {
    // From the end: shards mostly come in order, so that one look is enough until the last.
    for (int slot = (frame + 1) * shards - 1; slot >= frame * shards; slot--) {
      if (SlotWord.state(words.get(layout.slotWordAt(slot))) != SlotWord.READY) {
        return false;
      }
    }
    return true;
  }

  private int readySlots(int frame) {
    int count = 0;
    for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
      count += SlotWord.state(words.get(layout.slotWordAt(slot))) == SlotWord.READY ? 1 : 0;
    }
    return count;
  }

  private long bucketAt(long hash) {
    return bucketsAt + (hash & bucketMask) * Integer.BYTES;
  }

  private long nextAt(int frame) {
    return layout.frameAt(frame) + SegmentLayout.FRAME_NEXT;
  }
}
