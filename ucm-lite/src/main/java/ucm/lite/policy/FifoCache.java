package ucm.lite.policy;

import java.util.BitSet;

/**
 * First in, first out: a ring of the blocks inside, overwritten by a circular hand, as the original
 * UCM's buffer does it. What is touched while inside keeps its place.
 */
final class FifoCache extends BlockCache {
  private final int[] ring;
  private final BitSet inside;
  private int held;
  private int hand;

  FifoCache(int capacity, int blocks) {
    super(capacity);
    ring = new int[capacity];
    inside = new BitSet(blocks);
  }

  @Override
  boolean contains(int block) {
    return inside.get(block);
  }

  @Override
  int touch(int block) {
    if (inside.get(block)) {
      return NOTHING;
    }
    inside.set(block);
    int evicted = NOTHING;
    if (held < capacity) {
      held++;
    } else {
      evicted = ring[hand];
      inside.clear(evicted);
    }
    ring[hand] = block;
    hand = hand + 1 == capacity ? 0 : hand + 1;
    return evicted;
  }
}
