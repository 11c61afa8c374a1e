package ucm.api;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * An immutable list of block ids, 16 bytes each, packed as two big-endian {@code long}s.
 *
 * <p>An id names a block by the hash of the prompt prefix that produced it: equal ids, equal bytes.
 * Ids are not objects of their own; a method that needs one takes this list and an index. {@link
 * #slice} and {@link #select} share the memory. Thread-safe.
 */
public final class BlockIds {

  /** Bytes of one id. */
  public static final int ID_BYTES = 16;

  private static final int HEX_DIGITS = 2 * ID_BYTES;
  private static final HexFormat HEX = HexFormat.of();
  private static final BlockIds EMPTY = new BlockIds(new long[0], null, 0, 0);

  private final long[] words;
  // Which ids of the words are in the list, before from and size are applied; null for all.
  private final @Nullable Selection chosen;
  private final int from;
  private final int size;

  private BlockIds(long[] words, @Nullable Selection chosen, int from, int size) {
    this.words = words;
    this.chosen = chosen;
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
    return new BlockIds(words, null, 0, words.length / 2);
  }

  /** One id from its two big-endian words. */
  public static BlockIds of(long high, long low) {
    return new BlockIds(new long[] {high, low}, null, 0, 1);
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
    return new BlockIds(words, null, 0, texts.size());
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
    return new BlockIds(words, null, 0, words.length / 2);
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
    return new BlockIds(words, chosen, from + start, end - start);
  }

  /**
   * Some of this list, in their order; shares its memory. Takes a bit and a half for each id from the
   * first to the last of them, and nothing when they are neighbours.
   *
   * @param start the id that bit 0 stands for
   * @param some which ids from there on; may be changed afterwards
   * @throws IndexOutOfBoundsException when one of them is not in this list
   */
  public BlockIds select(int start, BitSet some) {
    int end = start + some.length();
    Objects.checkFromToIndex(start, end, size);
    int count = some.cardinality();
    int first = start + Math.max(0, some.nextSetBit(0));
    if (end - first == count || count == 0) {
      return slice(first, first + count);
    }
    if (chosen == null) {
      return new BlockIds(words, new Selection(from + start, some), 0, count);
    }
    int base = position(first);
    BitSet positions = new BitSet(position(end - 1) - base + 1);
    for (int i = some.nextSetBit(0); i >= 0; i = some.nextSetBit(i + 1)) {
      positions.set(position(start + i) - base);
    }
    return new BlockIds(words, new Selection(base, positions), 0, count);
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

  /** Where id i is in the array that lists share, counted in ids. */
  int position(int i) {
    int at = from + Objects.checkIndex(i, size);
    return chosen == null ? at : chosen.at(at);
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
