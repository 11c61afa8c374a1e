package ucm.pipeline.connector;

import java.util.Arrays;
import ucm.api.BlockIds;

/** Blocks of a step with the ids under which this rank keeps them, and the engine's block for each. */
final class RankBlocks {

  private long[] words = new long[32];
  private int[] blocks = new int[16];
  private int size;

  void clear() {
    size = 0;
  }

  int size() {
    return size;
  }

  void add(BlockIds ids, int i, int block) {
    if (size == blocks.length) {
      words = Arrays.copyOf(words, 2 * words.length);
      blocks = Arrays.copyOf(blocks, 2 * blocks.length);
    }
    words[2 * size] = ids.high(i);
    words[2 * size + 1] = ids.low(i);
    blocks[size++] = block;
  }

  void addAll(BlockIds ids, int[] of) {
    for (int i = 0; i < of.length; i++) {
      add(ids, i, of[i]);
    }
  }

  long high(int i) {
    return words[2 * i];
  }

  long low(int i) {
    return words[2 * i + 1];
  }

  int block(int i) {
    return blocks[i];
  }
}
