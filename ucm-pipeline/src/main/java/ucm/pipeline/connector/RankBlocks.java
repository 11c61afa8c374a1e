package ucm.pipeline.connector;

import com.carrotsearch.hppc.IntArrayList;
import com.carrotsearch.hppc.LongArrayList;
import ucm.api.BlockIds;

/** Blocks of a step with the ids under which this rank keeps them, and the engine's block for each. */
final class RankBlocks {

  private final LongArrayList words = new LongArrayList();
  private final IntArrayList blocks = new IntArrayList();

  void clear() {
    words.clear();
    blocks.clear();
  }

  int size() {
    return blocks.size();
  }

  void add(BlockIds ids, int i, int block) {
    words.add(ids.high(i), ids.low(i));
    blocks.add(block);
  }

  void addAll(BlockIds ids, int[] of) {
    for (int i = 0; i < of.length; i++) {
      add(ids, i, of[i]);
    }
  }

  long high(int i) {
    return words.get(2 * i);
  }

  long low(int i) {
    return words.get(2 * i + 1);
  }

  int block(int i) {
    return blocks.get(i);
  }
}
