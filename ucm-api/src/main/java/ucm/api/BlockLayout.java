package ucm.api;

import java.util.Arrays;

/**
 * How the bytes of a block are cut: a block is some shards, a shard is some tensors.
 *
 * <pre>
 *   block  | shard 0              | shard 1              | ...      all shards have the same size
 *   shard  | tensor 0 | tensor 1  | ...                             the same tensors in every shard
 * </pre>
 *
 * <p>A tensor is the smallest segment that lies in one stretch of the engine's memory (the keys of one
 * layer of one block, say). A shard is what is moved at once and checked by one checksum: a layer
 * when the engine works layer by layer, the whole block otherwise. All sizes are bytes. Immutable.
 */
public final class BlockLayout {

  private final long[] tensorSizes;
  private final long[] tensorOffsets;
  private final long shardSize;
  private final long blockSize;
  private final int shardCount;

  private BlockLayout(long[] tensorSizes, long blockSize) {
    this.tensorSizes = tensorSizes;
    this.tensorOffsets = new long[tensorSizes.length];
    long sum = 0;
    for (int i = 0; i < tensorSizes.length; i++) {
      if (tensorSizes[i] <= 0) {
        throw new IllegalArgumentException(
            "a tensor has at least one byte; tensor " + i + " has " + tensorSizes[i]);
      }
      tensorOffsets[i] = sum;
      sum = Math.addExact(sum, tensorSizes[i]);
    }
    this.shardSize = sum;
    this.blockSize = blockSize;
    if (sum == 0 || blockSize < sum || blockSize % sum != 0) {
      throw new IllegalArgumentException(
          "a block is a whole number of shards; block_size " + blockSize + ", shard " + sum);
    }
    this.shardCount = Math.toIntExact(blockSize / sum);
  }

  /**
   * A layout whose shards hold tensors of different sizes.
   *
   * @param tensorSizes bytes of each tensor of a shard, in order; copied
   * @param blockSize bytes of a block, a multiple of their sum
   * @throws IllegalArgumentException when the sizes do not fit
   */
  public static BlockLayout of(long[] tensorSizes, long blockSize) {
    return new BlockLayout(tensorSizes.clone(), blockSize);
  }

  /**
   * A layout whose tensors all have one size.
   *
   * @throws IllegalArgumentException when {@code shardSize} is no multiple of {@code tensorSize}, or
   *     {@code blockSize} none of {@code shardSize}
   */
  public static BlockLayout uniform(long tensorSize, long shardSize, long blockSize) {
    if (tensorSize <= 0 || shardSize < tensorSize || shardSize % tensorSize != 0) {
      throw new IllegalArgumentException(
          String.format(
              "a shard is a whole number of tensors; shard_size %s, tensor_size %s",
              shardSize, tensorSize));
    }
    long[] sizes = new long[Math.toIntExact(shardSize / tensorSize)];
    Arrays.fill(sizes, tensorSize);
    return new BlockLayout(sizes, blockSize);
  }

  /** Tensors in a shard. */
  public int tensorCount() {
    return tensorSizes.length;
  }

  /** Bytes of a tensor of every shard. */
  public long tensorSize(int tensor) {
    return tensorSizes[tensor];
  }

  /** Where a tensor starts within its shard, in bytes. */
  public long tensorOffset(int tensor) {
    return tensorOffsets[tensor];
  }

  /** Bytes of a shard. */
  public long shardSize() {
    return shardSize;
  }

  /** Shards in a block. */
  public int shardCount() {
    return shardCount;
  }

  /** Bytes of a block. */
  public long blockSize() {
    return blockSize;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof BlockLayout that
        && blockSize == that.blockSize
        && Arrays.equals(tensorSizes, that.tensorSizes);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(tensorSizes) + Long.hashCode(blockSize);
  }

  @Override
  public String toString() {
    return String.format(
        "BlockLayout[block %s = %s shards of %s = %s tensors]",
        blockSize, shardCount, shardSize, tensorSizes.length);
  }
}
