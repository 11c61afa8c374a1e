package ucm.store.cache;

import org.jspecify.annotations.Nullable;

/**
 * Which slots of one stripe of a shared pool this process refers to, how often, and who here waits for
 * which. In the segment there is one bit an owner: set with the first reference, cleared with the last.
 * Guarded by the lock of {@link SharedStripe}, except {@link #mayHaveEnded}.
 */
final class SlotReferences {

  /** Those who waited for a slot that another process was filling. */
  record Ended(int slot, boolean filled, Joined joined) {}

  private final SegmentWords words;
  private final SegmentLayout layout;
  private final int own;
  private final long bit;
  private final int first;
  private final int[] counts;
  private final @Nullable Joined[] joined;
  // Slots that are joined here and filled elsewhere.
  private final SlotBag foreign = new SlotBag();
  private int referenced;

  /**
   * No references.
   *
   * @param own this owner
   * @param first the first slot of the stripe
   * @param end the one behind the last
   */
  SlotReferences(SegmentWords words, SegmentLayout layout, int own, int first, int end) {
    this.words = words;
    this.layout = layout;
    this.own = own;
    this.bit = SlotWord.bit(own);
    this.first = first;
    this.counts = new int[end - first];
    this.joined = new Joined[end - first];
  }

  /** Notes the reference to a slot that was claimed, whose bit is set. */
  void claimed(int slot) {
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

  /** Takes a reference away; whether nobody anywhere refers to the slot any more. */
  boolean remove(int slot) {
    if (--counts[slot - first] > 0) {
      return false;
    }
    referenced--;
    long at = layout.slotWordAt(slot);
    words.clearBits(at, bit);
    return SlotWord.owners(words.get(at)) == 0;
  }

  /** Has somebody wait for a slot whose word is known; false when the word has changed. */
  boolean join(int slot, long word, SlotWaiter waiter, int index) {
    if (!add(slot, word)) {
      return false;
    }
    Joined before = joined[slot - first];
    if (before == null && SlotWord.filler(word) != own) {
      foreign.add(slot);
    }
    joined[slot - first] = new Joined(waiter, index, before);
    return true;
  }

  boolean isJoined(int slot) {
    return joined[slot - first] != null;
  }

  /** Those who wait for a slot, and now do no more. */
  @Nullable Joined takeJoined(int slot) {
    Joined all = joined[slot - first];
    joined[slot - first] = null;
    return all;
  }

  /** Whether {@link #takeEnded} may have something to tell; asked without the lock. */
  boolean mayHaveEnded() {
    return !foreign.isEmpty();
  }

  /** A slot that another process was filling and fills no more, with those who waited; or null. */
  @Nullable Ended takeEnded() {
    int i = 0;
    while (i < foreign.size()) {
      int slot = foreign.get(i);
      long word = words.get(layout.slotWordAt(slot));
      if (SlotWord.isFilling(word)) {
        i++;
        continue;
      }
      foreign.remove(i);
      Joined all = takeJoined(slot);
      if (all != null) {
        return new Ended(slot, SlotWord.state(word) == SlotWord.READY, all);
      }
    }
    return null;
  }

  /** How many slots are referred to. */
  int referenced() {
    return referenced;
  }
}
