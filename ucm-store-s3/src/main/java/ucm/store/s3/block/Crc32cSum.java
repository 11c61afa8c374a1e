package ucm.store.s3.block;

/**
 * The CRC32C of bytes put together from those of their parts, so that no byte is read twice. A CRC is a
 * polynomial over bits modulo another; so many more bytes multiply it by a power of x. Bits are in the order of
 * the CRC, the highest power last.
 */
final class Crc32cSum {

  private static final int POLYNOMIAL = 0x82F6_3B78;
  private static final int ONE = 1 << 31;
  private final int factor;

  /** Parts of one length in bytes. */
  Crc32cSum(long length) {
    int product = ONE;
    int power = ONE >>> Byte.SIZE;
    for (long left = length; left > 0; left >>>= 1) {
      product = (left & 1) == 0 ? product : times(product, power);
      power = times(power, power);
    }
    factor = product;
  }

  /** The CRC32C of what has one, and a part of the length after it. */
  int then(int before, int part) {
    return times(factor, before) ^ part;
  }

  private static int times(int a, int b) {
    int product = 0;
    int shifted = b;
    for (int bit = ONE; bit != 0; bit >>>= 1) {
      product ^= (a & bit) == 0 ? 0 : shifted;
      shifted = shifted >>> 1 ^ ((shifted & 1) == 0 ? 0 : POLYNOMIAL);
    }
    return product;
  }
}
