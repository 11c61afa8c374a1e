package ucm.api;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;

/**
 * An immutable list of block ids, 16 bytes each, packed as two big-endian {@code long}s.
 *
 * <p>An id names a block by the hash of the prompt prefix that produced it: equal ids, equal bytes.
 * Ids are not objects of their own; a method that needs one takes this list and an index. A
 * {@link #slice} shares the memory. Thread-safe.
 */
public final class BlockIds {

  /** Bytes of one id. */
  public static final int ID_BYTES = 16;

  private static final int HEX_DIGITS = 2 * ID_BYTES;
  private static final HexFormat HEX = HexFormat.of();
  private static final BlockIds EMPTY = new BlockIds(new long[0], 0, 0);

  private final long[] words;
  private final int from;
  private final int size;

  private BlockIds(long[] words, int from, int size) {
    this.words = words;
    this.from = from;
    this.size = size;
  }

  /** No ids. */
  public static BlockIds empty() {
    return EMPTY;
  }

  /**
   * Takes over packed words: id i is {@code words[2i]} (its first eight bytes, big-endian) and {@code
   * words[2i + 1]} (its last eight).
   *
   * @param words an array of even length that the caller does not change any more
   */
  public static BlockIds wrap(long[] words) {
    if (words.length % 2 != 0) {
      throw new IllegalArgumentException(
          "packed ids are two longs each, so their number is even; found " + words.length);
    }
    return new BlockIds(words, 0, words.length / 2);
  }

  /** One id from its two big-endian words. */
  public static BlockIds of(long high, long low) {
    return new BlockIds(new long[] {high, low}, 0, 1);
  }

  /**
   * Reads ids written as 32 hexadecimal digits each, in either case.
   *
   * @throws IllegalArgumentException naming the first text that is not an id
   */
  public static BlockIds ofHex(List<String> texts) {
    long[] words = new long[2 * texts.size()];
    for (int i = 0; i < texts.size(); i++) {
      String text = texts.get(i);
      try {
        if (text.length() != HEX_DIGITS) {
          throw new IllegalArgumentException("its length is " + text.length());
        }
        words[2 * i] = HexFormat.fromHexDigitsToLong(text, 0, ID_BYTES);
        words[2 * i + 1] = HexFormat.fromHexDigitsToLong(text, ID_BYTES, HEX_DIGITS);
      } catch (IllegalArgumentException e) {
        throw new IllegalArgumentException(
            "a block id is 32 hexadecimal digits; found \"" + text + "\": " + e.getMessage(), e);
      }
    }
    return new BlockIds(words, 0, texts.size());
  }

  /** Reads ids written as 32 hexadecimal digits each; see {@link #ofHex(List)}. */
  public static BlockIds ofHex(String... texts) {
    return ofHex(List.of(texts));
  }

  /**
   * Copies ids out of bytes.
   *
   * @param bytes a multiple of 16 bytes
   */
  public static BlockIds ofBytes(byte[] bytes) {
    if (bytes.length % ID_BYTES != 0) {
      throw new IllegalArgumentException("ids are 16 bytes each; found " + bytes.length + " bytes");
    }
    long[] words = new long[bytes.length / Long.BYTES];
    ByteBuffer.wrap(bytes).asLongBuffer().get(words);
    return new BlockIds(words, 0, words.length / 2);
  }

  /** How many ids. */
  public int size() {
    return size;
  }

  /** Whether there are none. */
  public boolean isEmpty() {
    return size == 0;
  }

  /** The first eight bytes of id i, big-endian. */
  public long high(int i) {
    return words[2 * position(i)];
  }

  /** The last eight bytes of id i, big-endian. */
  public long low(int i) {
    return words[2 * position(i) + 1];
  }

  /**
   * A part of this list; shares its memory.
   *
   * @param start first id, inclusive
   * @param end last id, exclusive
   */
  public BlockIds slice(int start, int end) {
    Objects.checkFromToIndex(start, end, size);
    return new BlockIds(words, from + start, end - start);
  }

  /**
   * Some of this list, in their order; a copy.
   *
   * @param start the id that bit 0 stands for
   * @param some which ids from there on; may be changed afterwards
   * @throws IndexOutOfBoundsException when one of them is not in this list
   */
  public BlockIds select(int start, BitSet some) {
    Objects.checkFromToIndex(start, start + some.length(), size);
    long[] chosen = new long[2 * some.cardinality()];
    int n = 0;
    for (int i = some.nextSetBit(0); i >= 0; i = some.nextSetBit(i + 1)) {
      chosen[n++] = high(start + i);
      chosen[n++] = low(start + i);
    }
    return wrap(chosen);
  }

  /** Id i as 32 lower-case hexadecimal digits. */
  public String hex(int i) {
    return hex(high(i), low(i));
  }

  /** An id, given as its two big-endian words, as 32 lower-case hexadecimal digits. */
  public static String hex(long high, long low) {
    return HEX.toHexDigits(high) + HEX.toHexDigits(low);
  }

  /** The ids as bytes, 16 each, in a fresh array. */
  public byte[] toBytes() {
    byte[] bytes = new byte[size * ID_BYTES];
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    for (int i = 0; i < size; i++) {
      buffer.putLong(high(i)).putLong(low(i));
    }
    return bytes;
  }

  private int position(int i) {
    return from + Objects.checkIndex(i, size);
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof BlockIds that) || size != that.size) {
      return false;
    }
    for (int i = 0; i < size; i++) {
      if (high(i) != that.high(i) || low(i) != that.low(i)) {
        return false;
      }
    }
    return true;
  }

  @Override
  public int hashCode() {
    int hash = 1;
    for (int i = 0; i < size; i++) {
      hash = 31 * (31 * hash + Long.hashCode(high(i))) + Long.hashCode(low(i));
    }
    return hash;
  }

  @Override
  public String toString() {
    return switch (size) {
      case 0 -> "BlockIds[]";
      case 1 -> "BlockIds[" + hex(0) + "]";
      default -> "BlockIds[" + hex(0) + " .. " + hex(size - 1) + ", " + size + " in all]";
    };
  }
}
