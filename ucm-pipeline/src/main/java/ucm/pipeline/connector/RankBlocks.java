package ucm.pipeline.connector;

import com.carrotsearch.hppc.IntArrayList;
import com.carrotsearch.hppc.LongArrayList;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Transfer;
import ucm.pipeline.connector.engine.KvCaches;

/** Blocks of a step with the ids under which this rank keeps them, and the engine's block for each. */
final class RankBlocks {

  static final int ALL_LAYERS = -1;

  private final KvCaches caches;
  private final BlockLayout cut;
  private final LongArrayList words = new LongArrayList();
  private final IntArrayList blocks = new IntArrayList();

  RankBlocks(KvCaches caches, BlockLayout cut) {
    this.caches = caches;
    this.cut = cut;
  }

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

  int block(int i) {
    return blocks.get(i);
  }

  /** Begins a transfer of one layer of all blocks, or of {@link #ALL_LAYERS}. */
  Transfer.Builder transfer(int layer) {
    Transfer.Builder transfer = Transfer.scattered(cut);
    for (int i = 0; i < size(); i++) {
      long high = words.get(2 * i);
      long low = words.get(2 * i + 1);
      if (layer == ALL_LAYERS) {
        caches.addBlock(transfer, cut, high, low, block(i));
      } else {
        transfer.shard(high, low, layer);
        caches.addLayer(transfer, layer, block(i));
      }
    }
    return transfer;
  }
}
