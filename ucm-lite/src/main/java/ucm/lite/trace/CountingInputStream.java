package ucm.lite.trace;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * The bytes of an input up to the end that it had when it was opened, counted for progress. What is appended
 * meanwhile is not read, and a file that is cut off meanwhile is an error.
 */
final class CountingInputStream extends FilterInputStream {
  private final long size;
  private long count;

  /** An input of so many bytes; -1 when not known. */
  CountingInputStream(InputStream in, long size) {
    super(in);
    this.size = size;
  }

  long count() {
    return count;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    if (count == size) {
      return -1;
    }
    int read = in.read(target, offset, size < 0 ? length : (int) Math.min(length, size - count));
    if (read < 0 && size >= 0) {
      throw new IOException(
          "it was cut off while it was read, from %s to %s bytes; read it again when nothing writes it"
              .formatted(size, count));
    }
    count += Math.max(0, read);
    return read;
  }
}
