package ucm.pipeline.connector.engine;

import java.util.List;
import ucm.api.BlockLayout;
import ucm.api.Transfer;

/**
 * The paged KV cache of one rank, registered with the worker side: all tensors of all layers, in the
 * order of the model. Immutable; the memory is the engine's.
 */
public final class KvCaches {

  private final List<List<KvTensor>> layers;
  private final int blocks;

  /**
   * Registers memory.
   *
   * @param layers the tensors of each layer; keys before values
   */
  public KvCaches(List<List<KvTensor>> layers) {
    this.layers = layers.stream().map(List::copyOf).toList();
    this.blocks = layers.stream().flatMap(List::stream).mapToInt(KvTensor::blocks).min().orElse(0);
    if (blocks == 0) {
      throw new IllegalArgumentException("a KV cache has at least one tensor; found none");
    }
  }

  /** How many blocks the engine has: as many as fit into each tensor. */
  public int blocks() {
    return blocks;
  }

  /** Whether all of it is memory of a device. */
  public boolean isOnDevice() {
    return layers.stream().flatMap(List::stream).noneMatch(tensor -> tensor.region().isHost());
  }

  /** What the registered tensors look like. */
  public KvLayout layout() {
    return new KvLayout(
        layers.stream().map(layer -> layer.stream().map(KvTensor::blockBytes).toList()).toList());
  }

  /** Adds the segments of a shard that is one layer of a block. */
  public void addLayer(Transfer.Builder transfer, int layer, int block) {
    for (KvTensor tensor : layers.get(layer)) {
      transfer.piece(tensor.region(), tensor.offsetOf(block));
    }
  }

  /** Adds the segments of all shards of a block. */
  public void addBlock(
      Transfer.Builder transfer, BlockLayout cut, long idHigh, long idLow, int block) {
    boolean shardIsLayer = cut.shardCount() == layers.size();
    for (int layer = 0; layer < layers.size(); layer++) {
      if (shardIsLayer || layer == 0) {
        transfer.shard(idHigh, idLow, layer);
      }
      addLayer(transfer, layer, block);
    }
  }

  @Override
  public String toString() {
    return "KvCaches[" + blocks + " blocks, " + layout() + "]";
  }
}
