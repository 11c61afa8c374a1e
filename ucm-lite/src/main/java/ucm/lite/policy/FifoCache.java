package ucm.lite.policy;

/**
 * First in, first out: a ring of the blocks inside, overwritten by a circular hand, as the original
 * UCM's buffer does it. What is touched while inside keeps its place.
 */
final class FifoCache extends BlockCache {
  private final int[] ring;
  private final BlockSet inside;
  private int held;
  private int hand;

  FifoCache(int capacity, int blocks) {
    super(capacity);
    ring = new int[capacity];
    inside = new BlockSet(blocks);
  }

  @Override
  boolean contains(int block) {
    return inside.contains(block);
  }

  @Override
  int touch(int block) {
    if (!inside.add(block)) {
      return NOTHING;
    }
    int evicted = NOTHING;
    if (held < capacity) {
      held++;
    } else {
      evicted = ring[hand];
      inside.remove(evicted);
    }
    ring[hand] = block;
    hand = hand + 1 == capacity ? 0 : hand + 1;
    return evicted;
  }
}
