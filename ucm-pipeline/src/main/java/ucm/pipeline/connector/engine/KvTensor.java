package ucm.pipeline.connector.engine;

import ucm.api.MemoryRegion;

/**
 * One tensor of a layer in the engine's paged KV cache: block b starts at {@code offset + b * stride}
 * in its region and is {@code blockBytes} long, in one stretch.
 *
 * @param region the memory; the engine keeps it alive until the worker side is closed
 * @param offset where block 0 starts, in bytes
 * @param stride bytes from one block to the next, at least {@code blockBytes}; more when keys and
 *     values of a block lie side by side
 * @param blockBytes bytes of a block
 */
public record KvTensor(MemoryRegion region, long offset, long stride, long blockBytes) {

  public KvTensor {
    if (offset < 0
        || blockBytes < 1
        || stride < blockBytes
        || offset > region.byteSize() - blockBytes) {
      throw new IllegalArgumentException(
          ("blocks of %s bytes, from offset %s on and one every %s bytes, do not fit" + " into %s")
              .formatted(blockBytes, offset, stride, region));
    }
  }

  /** A tensor that fills its region, block after block. */
  public static KvTensor dense(MemoryRegion region, long blockBytes) {
    return new KvTensor(region, 0, blockBytes, blockBytes);
  }

  /** How many blocks fit into the region. */
  public int blocks() {
    return Math.toIntExact(
        Math.min(Integer.MAX_VALUE, (region.byteSize() - offset - blockBytes) / stride + 1));
  }

  long offsetOf(int block) {
    return offset + block * stride;
  }
}
