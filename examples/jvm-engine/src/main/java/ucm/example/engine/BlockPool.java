package ucm.example.engine;

import java.util.ArrayDeque;
import java.util.Arrays;

/** The numbers of the blocks of the KV cache that no request uses. */
final class BlockPool {

  private final ArrayDeque<Integer> free = new ArrayDeque<>();

  BlockPool(int blocks) {
    for (int block = 0; block < blocks; block++) {
      free.add(block);
    }
  }

  /** Takes some blocks, or says that the cache is too small for the request. */
  int[] take(int count) {
    if (count > free.size()) {
      throw new IllegalArgumentException(
          "the request needs "
              + count
              + " blocks of KV cache, and "
              + free.size()
              + " are free: shorten it, or give the engine more blocks");
    }
    int[] blocks = new int[count];
    for (int i = 0; i < count; i++) {
      blocks[i] = free.remove();
    }
    return blocks;
  }

  /** Gives blocks back. */
  void giveBack(int[] blocks) {
    Arrays.stream(blocks).forEach(free::add);
  }
}
