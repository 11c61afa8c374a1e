package ucm.pipeline.connector.engine;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import ucm.api.BlockLayout;

/**
 * How many bytes one block of tokens takes on one rank, tensor by tensor: keys and values of each
 * layer with grouped-query attention (GQA), one latent with multi-head latent attention (MLA), more
 * where an engine keeps more. Immutable.
 *
 * @param bytes for each layer, bytes of a block in each tensor
 */
public record KvLayout(List<List<Long>> bytes) {

  public KvLayout {
    bytes = bytes.stream().map(List::copyOf).toList();
    if (bytes.isEmpty() || bytes.stream().anyMatch(List::isEmpty)) {
      throw new IllegalArgumentException(
          "a KV cache has at least one layer, and each layer a tensor; found " + bytes);
    }
  }

  /**
   * A model whose layers are alike, as nearly all are.
   *
   * @param tensorBytes bytes of a block in each tensor of a layer
   */
  public static KvLayout uniform(int layers, long... tensorBytes) {
    return new KvLayout(Collections.nCopies(layers, boxed(tensorBytes)));
  }

  /**
   * A model whose layers differ. It cannot be moved layer by layer.
   *
   * @param tensorBytes for each layer, bytes of a block in each tensor
   */
  public static KvLayout of(long[][] tensorBytes) {
    return new KvLayout(Arrays.stream(tensorBytes).map(KvLayout::boxed).toList());
  }

  private static List<Long> boxed(long[] layer) {
    return Arrays.stream(layer).boxed().toList();
  }

  public int layers() {
    return bytes.size();
  }

  public int tensors(int layer) {
    return bytes.get(layer).size();
  }

  /** Bytes of a block in a tensor. */
  public long tensorBytes(int layer, int tensor) {
    return bytes.get(layer).get(tensor);
  }

  /** Whether all layers have the same tensors, so that a shard can be a layer. */
  public boolean isUniform() {
    return bytes.stream().distinct().count() == 1;
  }

  /**
   * How stores cut a block: a shard is a layer when all are alike, whether the engine works layer by
   * layer or not, so that what is stored in one mode is found in the other; else it is the block.
   */
  public BlockLayout blockLayout() {
    long[] all = bytes.stream().flatMap(List::stream).mapToLong(Long::longValue).toArray();
    long[] shard = isUniform() ? Arrays.copyOf(all, tensors(0)) : all;
    return BlockLayout.of(shard, Arrays.stream(all).sum());
  }

  @Override
  public String toString() {
    return "KvLayout[%s layers, bytes of a block %s]"
        .formatted(layers(), isUniform() ? bytes.getFirst() + " each" : bytes);
  }
}
