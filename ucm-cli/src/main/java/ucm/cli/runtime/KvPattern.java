package ucm.cli.runtime;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What stands for the content of a KV cache where there is no model: bytes made from the name of the block,
 * so that every eight bytes of every tensor differ from all others in sight and a byte out of place is seen.
 */
public final class KvPattern {

  /** What fills memory that holds nothing. */
  public static final byte POISON = (byte) 0xA5;

  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final long TENSOR_STEP = 0xD1B54A32D192ED03L;

  private KvPattern() {}

  /** What the bytes of a tensor, counted over all layers, of a block begin from. */
  public static long seed(long high, long low, int tensor) {
    return high + Long.rotateLeft(low, 32) + tensor * TENSOR_STEP;
  }

  /** Writes the bytes that begin from a seed. */
  public static void fill(MemorySegment page, long seed) {
    long whole = page.byteSize() & -Long.BYTES;
    long value = seed;
    for (long at = 0; at < whole; at += Long.BYTES) {
      page.set(LONG, at, value);
      value += STEP;
    }
    for (long at = whole; at < page.byteSize(); at++) {
      page.set(ValueLayout.JAVA_BYTE, at, rest(value, at - whole));
    }
  }

  /** Where the first byte stands, within eight, that is not as {@link #fill} wrote it; -1 if none. */
  public static long firstWrong(MemorySegment page, long seed) {
    long whole = page.byteSize() & -Long.BYTES;
    long value = seed;
    for (long at = 0; at < whole; at += Long.BYTES) {
      if (page.get(LONG, at) != value) {
        return at;
      }
      value += STEP;
    }
    for (long at = whole; at < page.byteSize(); at++) {
      if (page.get(ValueLayout.JAVA_BYTE, at) != rest(value, at - whole)) {
        return at;
      }
    }
    return -1;
  }

  private static byte rest(long value, long index) {
    return (byte) (value >>> (8 * index));
  }
}
