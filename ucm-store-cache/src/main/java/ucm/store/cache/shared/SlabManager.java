package ucm.store.cache.shared;

import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreMetrics;
import ucm.store.cache.eviction.BlockTable;

/**
 * Gives the frames of one stripe of a shared pool to blocks, and takes them back. All of it is done by
 * the holder of the stripe's {@linkplain StripeLock lock}, with the stripe's version odd meanwhile.
 *
 * <p>The order of writes is such that whoever dies at whatever instruction leaves words that are true:
 * a frame is NAMED after its id is written and its first slot claimed, and is an ORPHAN before its
 * slots are emptied. Chains and the free list may be broken by then; {@link #repair} makes them anew from the words, and may
 * itself be begun again.
 *
 * <p>Eviction is by least recent use, judged by a sample of {@value #SAMPLE} frames (all of them in a
 * stripe of up to {@value #SMALL}): an exact order is a list that every hit of every process would have
 * to lock. Only a frame none of whose slots anybody refers to is evicted.
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
    this.first = layout.firstFrame(stripe);
    this.last = layout.firstFrame(stripe + 1);
    this.shards = layout.shards();
    this.stripeAt = layout.stripeAt(stripe);
  }

  /** Makes all frames of a stripe of a new segment free; before anybody else sees it. */
  static void format(SegmentWords words, SegmentLayout layout, int stripe) {
    new SlabManager(words, layout, stripe, 0, _ -> {}).rebuild();
  }

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
      words.set(at, SlabWord.named(words.get(at), dumpers));
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
      words.set(at, SlabWord.orphaned(words.get(at)));
    }
    end();
    return frame;
  }

  /** Frees a frame if it is an orphan to whose slots nobody refers; whether it did. */
  boolean freeOrphan(int frame) {
    begin();
    boolean free = SlabWord.state(table.word(frame)) == SlabWord.ORPHAN && recycle(frame);
    if (free) {
      pushFree(frame);
    }
    end();
    return free;
  }

  /**
   * Makes everything anew from the words, and takes dead owners out of them.
   *
   * @param dead owners that died, bit by bit
   * @param quarantine whether slots that a dead owner was filling keep its bit
   * @return whether some slot did
   */
  boolean repair(int dead, boolean quarantine) {
    begin();
    boolean kept = false;
    for (int frame = first; dead != 0 && frame < last; frame++) {
      if ((SlabWord.dumpers(table.word(frame)) & dead) != 0) {
        // Its only whole copy may be this one, and nobody is left to write it to the stage behind.
        table.orphan(frame);
      }
      for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
        kept |= forget(frame, slot, dead, quarantine);
      }
    }
    rebuild();
    end();
    return kept;
  }

  private boolean forget(int frame, int slot, int dead, boolean quarantine) {
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
        table.orphan(frame);
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
    // Backwards, so that frames are given out in the order of memory.
    for (int frame = last - 1; frame >= first; frame--) {
      int state = SlabWord.state(table.word(frame));
      if (state == SlabWord.NAMED) {
        long at = layout.frameAt(frame);
        link(
            frame,
            BlockTable.hash(
                words.plain(at + SegmentLayout.FRAME_HIGH),
                words.plain(at + SegmentLayout.FRAME_LOW)));
        table.noteComplete(frame);
      } else if (recycle(frame)) {
        pushFree(frame);
      }
    }
  }

  private int freeFrame() {
    int free = words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE);
    if (free != END) {
      words.setPlainInt(
          stripeAt + SegmentLayout.STRIPE_FREE, words.plainInt(table.nextAt(free - 1)));
      return free - 1;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      int frame = victim();
      if (frame == NONE) {
        return NONE;
      }
      long before = table.word(frame);
      int lost = SlabWord.state(before) == SlabWord.NAMED ? readySlots(frame) : 0;
      table.orphan(frame);
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
          SlabWord.state(table.word(frame)) == SlabWord.ORPHAN
              ? -1
              : words.plain(layout.frameAt(frame) + SegmentLayout.FRAME_STAMP);
      if (stamp < oldest && table.isIdle(frame)) {
        best = frame;
        oldest = stamp;
      }
    }
    for (int frame = first; frame < last && best == NONE && !small; frame++) {
      best = table.isIdle(frame) ? frame : NONE;
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
    words.set(at, SlabWord.freed(words.get(at)));
    return true;
  }

  private void claim(int slot, int state) {
    long at = layout.slotWordAt(slot);
    words.set(at, SlotWord.claimed(words.get(at), owner, state));
  }

  private void link(int frame, long hash) {
    long bucket = table.bucketAt(hash);
    words.setPlainInt(table.nextAt(frame), words.plainInt(bucket));
    words.setInt(bucket, frame + 1);
  }

  private void unlink(int frame) {
    long at = layout.frameAt(frame);
    long link =
        table.bucketAt(
            BlockTable.hash(
                words.plain(at + SegmentLayout.FRAME_HIGH),
                words.plain(at + SegmentLayout.FRAME_LOW)));
    int next = words.plainInt(link);
    for (int step = first; next != END && step <= last; step++) {
      if (next == frame + 1) {
        words.setInt(link, words.plainInt(table.nextAt(frame)));
        return;
      }
      link = table.nextAt(next - 1);
      next = words.plainInt(link);
    }
  }

  private void pushFree(int frame) {
    words.setPlainInt(table.nextAt(frame), words.plainInt(stripeAt + SegmentLayout.STRIPE_FREE));
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

  private int readySlots(int frame) {
    int count = 0;
    for (int slot = frame * shards; slot < (frame + 1) * shards; slot++) {
      count += SlotWord.state(words.get(layout.slotWordAt(slot))) == SlotWord.READY ? 1 : 0;
    }
    return count;
  }
}
