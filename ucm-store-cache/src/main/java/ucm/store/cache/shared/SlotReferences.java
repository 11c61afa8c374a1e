package ucm.store.cache.shared;

import org.jspecify.annotations.Nullable;
import ucm.store.cache.pool.SlotWait;
import ucm.store.cache.pool.SlotWaiter;
import ucm.store.cache.pool.SlotWaits;

/**
 * Which slots of one stripe of a shared pool this process refers to, how often, and which of its tasks wait for
 * which. In the segment there is one bit an owner: set with the first reference, cleared with the last.
 * Guarded by the lock of {@link SharedStripe}, except {@link #mayHaveEnded}.
 */
final class SlotReferences {

  private final SegmentWords words;
  private final SegmentLayout layout;
  private final int own;
  private final long bit;
  private final int first;
  private final int[] counts;
  private final SlotWaits joined;
  // Slots that are joined here and filled elsewhere.
  private final SlotList foreign = new SlotList();
  private int referenced;

  /**
   * No references.
   *
   * @param own this owner
   * @param first the first slot of the stripe
   * @param end the one after the last
   */
  SlotReferences(SegmentWords words, SegmentLayout layout, int own, int first, int end) {
    this.words = words;
    this.layout = layout;
    this.own = own;
    this.bit = SlotWord.bit(own);
    this.first = first;
    this.counts = new int[end - first];
    this.joined = new SlotWaits(end - first);
  }

  /** Notes the reference to a slot that was reserved, whose bit is set. */
  void reserved(int slot) {
    counts[slot - first] = 1;
    referenced++;
  }

  /** Adds a reference to a slot whose word is known; false when the word has changed. */
  boolean add(int slot, long word) {
    if (counts[slot - first] == 0) {
      if (!words.swap(layout.slotWordAt(slot), word, word | bit)) {
        return false;
      }
      referenced++;
    }
    counts[slot - first]++;
    return true;
  }

  /** Takes a reference away; whether it was the last of all processes. */
  boolean remove(int slot) {
    if (--counts[slot - first] > 0) {
      return false;
    }
    referenced--;
    long at = layout.slotWordAt(slot);
    words.clearBits(at, bit);
    return SlotWord.owners(words.get(at)) == 0;
  }

  /** Adds a wait for a slot whose word is known; false when the word has changed. */
  boolean join(int slot, long word, SlotWaiter waiter, int index) {
    if (!add(slot, word)) {
      return false;
    }
    if (!isWaitedFor(slot) && SlotWord.filler(word) != own) {
      foreign.add(slot);
    }
    joined.add(slot - first, waiter, index);
    return true;
  }

  boolean isWaitedFor(int slot) {
    return joined.has(slot - first);
  }

  /** Removes and returns the waits for a slot. */
  @Nullable SlotWait takeWaits(int slot) {
    return joined.take(slot - first);
  }

  /** Takes back waits that were taken together; all waiters were told. */
  void giveBack(SlotWait all) {
    joined.giveBack(all);
  }

  /** Whether {@link #takeEnded} may have something to tell; asked without the lock. */
  boolean mayHaveEnded() {
    return !foreign.isEmpty();
  }

  /**
   * Those who waited for a slot that another process was filling and fills no more, the first of whom
   * says which slot and how it ended; or null.
   */
  @Nullable SlotWait takeEnded() {
    int i = 0;
    while (i < foreign.size()) {
      int slot = foreign.get(i);
      long word = words.get(layout.slotWordAt(slot));
      if (SlotWord.isFilling(word)) {
        i++;
        continue;
      }
      foreign.remove(i);
      SlotWait all = takeWaits(slot);
      if (all != null) {
        all.slot = slot;
        all.isFilled = SlotWord.state(word) == SlotWord.READY;
        return all;
      }
    }
    return null;
  }

  /** How many slots are referred to. */
  int referenced() {
    return referenced;
  }
}
