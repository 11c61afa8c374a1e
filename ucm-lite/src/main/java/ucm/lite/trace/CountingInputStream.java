package ucm.lite.trace;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Counts the bytes taken from a stream, for progress. */
final class CountingInputStream extends FilterInputStream {
  private final boolean closes;
  private long count;

  CountingInputStream(InputStream in, boolean closes) {
    super(in);
    this.closes = closes;
  }

  long count() {
    return count;
  }

  @Override
  public int read() throws IOException {
    int value = in.read();
    if (value >= 0) {
      count++;
    }
    return value;
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    int read = in.read(target, offset, length);
    if (read > 0) {
      count += read;
    }
    return read;
  }

  @Override
  public void close() throws IOException {
    if (closes) {
      in.close();
    }
  }
}
