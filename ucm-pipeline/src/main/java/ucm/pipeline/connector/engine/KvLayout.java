package ucm.pipeline.connector.engine;

import java.util.Arrays;
import java.util.stream.IntStream;
import ucm.api.BlockLayout;

/**
 * How many bytes one block of tokens takes on one rank, tensor by tensor: keys and values of each
 * layer with grouped-query attention (GQA), one latent with multi-head latent attention (MLA), more
 * where an engine keeps more. Immutable.
 */
public final class KvLayout {

  private final long[][] bytes;

  private KvLayout(long[][] bytes) {
    if (bytes.length == 0 || Arrays.stream(bytes).anyMatch(layer -> layer.length == 0)) {
      throw new IllegalArgumentException(
          "a KV cache has at least one layer, and each layer a tensor; found "
              + Arrays.deepToString(bytes));
    }
    this.bytes = bytes;
  }

  /**
   * A model whose layers are alike, as nearly all are.
   *
   * @param tensorBytes bytes of a block in each tensor of a layer
   */
  public static KvLayout uniform(int layers, long... tensorBytes) {
    return new KvLayout(
        IntStream.range(0, layers).mapToObj(i -> tensorBytes.clone()).toArray(long[][]::new));
  }

  /**
   * A model whose layers differ. It cannot be moved layer by layer.
   *
   * @param tensorBytes for each layer, bytes of a block in each tensor
   */
  public static KvLayout of(long[][] tensorBytes) {
    return new KvLayout(Arrays.stream(tensorBytes).map(long[]::clone).toArray(long[][]::new));
  }

  public int layers() {
    return bytes.length;
  }

  public int tensors(int layer) {
    return bytes[layer].length;
  }

  /** Bytes of a block in a tensor. */
  public long tensorBytes(int layer, int tensor) {
    return bytes[layer][tensor];
  }

  /** Whether all layers have the same tensors, so that a shard can be a layer. */
  public boolean isUniform() {
    return Arrays.stream(bytes).allMatch(layer -> Arrays.equals(layer, bytes[0]));
  }

  /**
   * How stores cut a block: a shard is a layer when all are alike, whether the engine works layer by
   * layer or not, so that what is stored in one mode is found in the other; else it is the block.
   */
  public BlockLayout blockLayout() {
    long total = Arrays.stream(bytes).flatMapToLong(Arrays::stream).sum();
    return isUniform()
        ? BlockLayout.of(bytes[0], total)
        : BlockLayout.of(Arrays.stream(bytes).flatMapToLong(Arrays::stream).toArray(), total);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KvLayout that && Arrays.deepEquals(bytes, that.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.deepHashCode(bytes);
  }

  @Override
  public String toString() {
    return "KvLayout[%s layers, bytes of a block %s]"
        .formatted(
            layers(),
            isUniform() ? Arrays.toString(bytes[0]) + " each" : Arrays.deepToString(bytes));
  }
}
