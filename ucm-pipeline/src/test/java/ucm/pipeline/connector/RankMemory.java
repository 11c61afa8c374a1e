package ucm.pipeline.connector;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;
import ucm.testkit.BlockBytes;

/**
 * The paged KV cache of a rank in tests. The bytes of a block are made from its id, so that
 * they can be checked by the id. Keys and values of a block lie side by side, so strides
 * are larger than tensors.
 */
public final class RankMemory {

  private static final byte POISON = (byte) 0xA5;

  private final KvLayout layout;
  private final List<MemorySegment> segments = new ArrayList<>();
  private final List<List<KvTensor>> layers = new ArrayList<>();

  public RankMemory(KvLayout layout, int blocks) {
    this.layout = layout;
    for (int layer = 0; layer < layout.layers(); layer++) {
      long stride = 0;
      for (int tensor = 0; tensor < layout.tensors(layer); tensor++) {
        stride += layout.tensorBytes(layer, tensor);
      }
      MemorySegment segment = Arena.ofAuto().allocate(blocks * stride, 64).fill(POISON);
      MemoryRegion region = MemoryRegion.host(segment);
      List<KvTensor> tensors = new ArrayList<>();
      long offset = 0;
      for (int tensor = 0; tensor < layout.tensors(layer); tensor++) {
        long bytes = layout.tensorBytes(layer, tensor);
        tensors.add(new KvTensor(region, offset, stride, bytes));
        offset += bytes;
      }
      segments.add(segment);
      layers.add(tensors);
    }
  }

  public KvCaches caches() {
    return new KvCaches(layers);
  }

  /** What computing a layer of a block leaves. */
  void compute(int layer, int block, BlockIds ids, int i) {
    BlockBytes.fill(slice(layer, block), ids.high(i), ids.low(i), layer, 0);
  }

  /** Overwrites a block with bytes that belong to none. */
  void poison(int block) {
    for (int layer = 0; layer < layout.layers(); layer++) {
      slice(layer, block).fill(POISON);
    }
  }

  /** Whether every byte of a block is that of an id. */
  boolean holds(int block, BlockIds ids, int i) {
    for (int layer = 0; layer < layout.layers(); layer++) {
      if (!holds(layer, block, ids, i)) {
        return false;
      }
    }
    return true;
  }

  /** Whether every byte of a layer of a block is that of an id. */
  boolean holds(int layer, int block, BlockIds ids, int i) {
    return BlockBytes.firstWrong(slice(layer, block), ids.high(i), ids.low(i), layer, 0) < 0;
  }

  private MemorySegment slice(int layer, int block) {
    long stride = layers.get(layer).getFirst().stride();
    return segments.get(layer).asSlice(block * stride, stride);
  }
}
