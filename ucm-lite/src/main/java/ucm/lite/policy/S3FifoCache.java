package ucm.lite.policy;

/**
 * S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: FIFO Queues are All You Need for Cache Eviction, SOSP'23):
 * a small queue of a tenth of the capacity that new blocks pass through, a main queue, and a ghost
 * queue of names as long as the main one. A block touched more than once while in the small queue,
 * or again soon after it left, gets into the main queue; there, touched blocks go round again.
 */
final class S3FifoCache extends BlockCache {
  private static final int SMALL = 0;
  private static final int MAIN = 1;
  private static final int GHOST = 2;
  private static final int MOST_TOUCHES = 3;

  private final BlockLists queues;
  private final byte[] touches;
  private final int smallCapacity;
  private final int ghostCapacity;

  S3FifoCache(int capacity, int blocks) {
    super(capacity);
    queues = new BlockLists(blocks, 3);
    touches = new byte[blocks];
    smallCapacity = Math.max(1, capacity / 10);
    ghostCapacity = capacity - smallCapacity;
  }

  @Override
  boolean contains(int block) {
    int queue = queues.listOf(block);
    return queue == SMALL || queue == MAIN;
  }

  @Override
  int touch(int block) {
    int queue = queues.listOf(block);
    if (queue == SMALL || queue == MAIN) {
      touches[block] = (byte) Math.min(MOST_TOUCHES, touches[block] + 1);
      return NOTHING;
    }
    int evicted = NOTHING;
    if (queues.size(SMALL) + queues.size(MAIN) == capacity) {
      evicted = evict();
      // The eviction may have pushed this very name out of the ghost queue.
      queue = queues.listOf(block);
    }
    if (queue == GHOST) {
      queues.moveToHead(MAIN, block);
    } else {
      queues.addHead(SMALL, block);
    }
    touches[block] = 0;
    return evicted;
  }

  private int evict() {
    while (true) {
      boolean fromSmall = queues.size(SMALL) >= smallCapacity || queues.size(MAIN) == 0;
      int block = queues.removeTail(fromSmall ? SMALL : MAIN);
      if (fromSmall) {
        if (touches[block] <= 1) {
          remember(block);
          return block;
        }
        touches[block] = 0;
        queues.addHead(MAIN, block);
      } else {
        if (touches[block] == 0) {
          return block;
        }
        touches[block]--;
        queues.addHead(MAIN, block);
      }
    }
  }

  private void remember(int block) {
    if (ghostCapacity == 0) {
      return;
    }
    if (queues.size(GHOST) == ghostCapacity) {
      queues.removeTail(GHOST);
    }
    queues.addHead(GHOST, block);
  }
}
