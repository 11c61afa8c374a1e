package ucm.testkit;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import ucm.api.BlockIds;

/**
 * What the bytes of a block are, in tests: a fixed function of the block's id, the shard and the
 * offset in the shard.
 *
 * <p>The code that fills memory and the code that checks it need not share anything but this class, so bytes can
 * be followed through threads, processes and restarts. Bytes of different blocks, shards or offsets
 * are unrelated, so that anything moved to a wrong place is noticed. All methods are thread-safe.
 */
public final class BlockBytes {

  private static final long GAMMA = 0x9E3779B97F4A7C15L;
  private static final ValueLayout.OfLong WORD =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private BlockBytes() {}

  /**
   * The byte of a shard at an offset.
   *
   * @param idHigh first eight bytes of the block's id, big-endian
   * @param idLow last eight bytes of it
   * @param shard index of the shard in its block
   * @param offset in bytes from the start of the shard
   */
  public static byte at(long idHigh, long idLow, int shard, long offset) {
    return at(seed(idHigh, idLow, shard), offset);
  }

  /**
   * Fills memory with a stretch of a shard.
   *
   * @param memory all of it is filled
   * @param offset where in the shard the memory starts, in bytes
   */
  public static void fill(MemorySegment memory, long idHigh, long idLow, int shard, long offset) {
    long seed = seed(idHigh, idLow, shard);
    long size = memory.byteSize();
    long i = 0;
    for (; i < size && (offset + i) % Long.BYTES != 0; i++) {
      memory.set(ValueLayout.JAVA_BYTE, i, at(seed, offset + i));
    }
    for (; i + Long.BYTES <= size; i += Long.BYTES) {
      memory.set(WORD, i, word(seed, (offset + i) / Long.BYTES));
    }
    for (; i < size; i++) {
      memory.set(ValueLayout.JAVA_BYTE, i, at(seed, offset + i));
    }
  }

  /**
   * Finds the first byte of memory that is not what it should be.
   *
   * @param memory a stretch of a shard
   * @param offset where in the shard the memory starts, in bytes
   * @return its offset in the memory, or -1 when all of it is right
   */
  public static long firstWrong(
      MemorySegment memory, long idHigh, long idLow, int shard, long offset) {
    long seed = seed(idHigh, idLow, shard);
    long size = memory.byteSize();
    long i = 0;
    while (i < size) {
      long at = offset + i;
      if (at % Long.BYTES == 0
          && i + Long.BYTES <= size
          && memory.get(WORD, i) == word(seed, at / Long.BYTES)) {
        i += Long.BYTES;
      } else if (memory.get(ValueLayout.JAVA_BYTE, i) == at(seed, at)) {
        i++;
      } else {
        return i;
      }
    }
    return -1;
  }

  /**
   * Checks memory that should hold a stretch of a shard.
   *
   * @throws AssertionError naming block, shard, offset in the shard, and the byte expected and found
   */
  public static void check(MemorySegment memory, long idHigh, long idLow, int shard, long offset) {
    long wrong = firstWrong(memory, idHigh, idLow, shard, offset);
    if (wrong < 0) {
      return;
    }
    long at = offset + wrong;
    throw new AssertionError(
        "block %s shard %d offset %d: expected byte 0x%02x, found 0x%02x"
            .formatted(
                BlockIds.hex(idHigh, idLow),
                shard,
                at,
                at(idHigh, idLow, shard, at),
                memory.get(ValueLayout.JAVA_BYTE, wrong)));
  }

  /**
   * Ids of unrelated blocks.
   *
   * @param seed the same seed gives the same ids
   */
  public static BlockIds ids(long seed, int count) {
    long[] words = new long[2 * count];
    for (int i = 0; i < words.length; i++) {
      words[i] = word(seed, i);
    }
    return BlockIds.wrap(words);
  }

  private static byte at(long seed, long offset) {
    return (byte) (word(seed, offset / Long.BYTES) >>> (Byte.SIZE * (offset % Long.BYTES)));
  }

  private static long seed(long idHigh, long idLow, int shard) {
    return mix(mix(mix(idHigh) + idLow) + shard);
  }

  private static long word(long seed, long index) {
    return mix(seed + (index + 1) * GAMMA);
  }

  // The finalizer of SplitMix64: every bit of the input reaches every bit of the result.
  public static long mix(long z) {
    long y = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    long x = (y ^ (y >>> 27)) * 0x94D049BB133111EBL;
    return x ^ (x >>> 31);
  }
}
