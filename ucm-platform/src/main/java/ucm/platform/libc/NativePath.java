package ucm.platform.libc;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import ucm.api.StoreException;

/**
 * A path as the kernel takes it: bytes off the heap that end with a zero. Written over and over, so
 * that naming a block's file costs no allocation. Not thread-safe.
 */
public final class NativePath {

  // PATH_MAX of Linux, with the zero at the end.
  private static final int CAPACITY = 4096;
  private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  final NativeBuffer buffer = new NativeBuffer(CAPACITY);
  private final MemorySegment bytes = buffer.bytes;
  private final byte[] hex = new byte[Long.BYTES * 2];
  private int length;

  /** A path that holds a text. */
  public static NativePath of(String text) {
    return new NativePath().set(text);
  }

  /** Replaces what is here. */
  public NativePath set(String text) {
    return set(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Replaces what is here by bytes of UTF-8. */
  public NativePath set(byte[] utf8) {
    length = 0;
    return append(utf8);
  }

  /** Replaces what is here by the first bytes of another path. */
  public NativePath set(NativePath from, int count) {
    Objects.checkIndex(count, from.length + 1);
    MemorySegment.copy(from.bytes, 0, bytes, 0, count);
    length = 0;
    return grown(count);
  }

  /** Adds a part of another path at the end. */
  public NativePath append(NativePath from, int start, int end) {
    Objects.checkFromToIndex(start, end, from.length);
    require(end - start);
    MemorySegment.copy(from.bytes, start, bytes, length, end - start);
    return grown(end - start);
  }

  /** How many bytes there are. */
  public int length() {
    return length;
  }

  /** A byte of it. */
  public byte byteAt(int index) {
    return bytes.get(ValueLayout.JAVA_BYTE, Objects.checkIndex(index, length));
  }

  /** Where the last slash before a place is, or -1. */
  public int slashBefore(int end) {
    int at = end - 1;
    while (at >= 0 && byteAt(at) != '/') {
      at--;
    }
    return at;
  }

  /** Whether some bytes are at a place, which may be out of the path. */
  public boolean has(byte[] wanted, int at) {
    boolean has = at >= 0 && at + wanted.length <= length;
    for (int i = 0; has && i < wanted.length; i++) {
      has = byteAt(at + i) == wanted[i];
    }
    return has;
  }

  /** Adds bytes of UTF-8 at the end. */
  public NativePath append(byte[] utf8) {
    require(utf8.length);
    MemorySegment.copy(utf8, 0, bytes, ValueLayout.JAVA_BYTE, length, utf8.length);
    return grown(utf8.length);
  }

  /** Adds a text at the end. */
  public NativePath append(String text) {
    return append(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Adds one ASCII character at the end. */
  public NativePath append(char character) {
    require(1);
    bytes.set(ValueLayout.JAVA_BYTE, length, (byte) character);
    return grown(1);
  }

  /**
   * Adds the first hexadecimal digits of a word, lower case, at the end.
   *
   * @param digits how many, 1 to 16
   */
  public NativePath appendHex(long word, int digits) {
    require(digits);
    for (int i = 0; i < digits; i++) {
      hex[i] = DIGITS[(int) (word >>> (60 - 4 * i)) & 0xf];
    }
    // All at once: before it is compiled, a byte off the heap costs as much as thirty in an array.
    MemorySegment.copy(hex, 0, bytes, ValueLayout.JAVA_BYTE, length, digits);
    return grown(digits);
  }

  private NativePath grown(int by) {
    length += by;
    bytes.set(ValueLayout.JAVA_BYTE, length, (byte) 0);
    return this;
  }

  private void require(int more) {
    if (length + more >= CAPACITY) {
      throw new StoreException(
          "a path has at most " + (CAPACITY - 1) + " bytes; found a longer one: " + this + "...");
    }
  }

  @Override
  public String toString() {
    byte[] copy = bytes.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
    return new String(copy, StandardCharsets.UTF_8);
  }
}
