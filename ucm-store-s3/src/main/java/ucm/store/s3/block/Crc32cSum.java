package ucm.store.s3.block;

/**
 * The CRC32C of bytes put together from those of their parts, so that no byte is read twice. What so many more
 * bytes do to a CRC is a linear map over its bits, here a matrix with a column for each bit.
 */
public final class Crc32cSum {

  private static final int POLYNOMIAL = 0x82F6_3B78;
  private final int[] columns;

  /** Parts of one length in bytes. */
  public Crc32cSum(long length) {
    int[] result = new int[Integer.SIZE];
    int[] power = new int[Integer.SIZE];
    for (int bit = 0; bit < Integer.SIZE; bit++) {
      result[bit] = 1 << bit;
      // One more zero bit.
      power[bit] = bit == 0 ? POLYNOMIAL : 1 << (bit - 1);
    }
    for (long bits = length * Byte.SIZE; bits > 0; bits >>>= 1) {
      result = (bits & 1) == 0 ? result : product(power, result);
      power = product(power, power);
    }
    columns = result;
  }

  /** The CRC32C of what has one, and a part of the length after it. */
  public int then(int before, int part) {
    return times(columns, before) ^ part;
  }

  private static int[] product(int[] a, int[] b) {
    int[] c = new int[Integer.SIZE];
    for (int bit = 0; bit < Integer.SIZE; bit++) {
      c[bit] = times(a, b[bit]);
    }
    return c;
  }

  private static int times(int[] matrix, int vector) {
    int sum = 0;
    for (int bit = 0; bit < Integer.SIZE; bit++) {
      sum ^= (vector >>> bit & 1) == 0 ? 0 : matrix[bit];
    }
    return sum;
  }
}
