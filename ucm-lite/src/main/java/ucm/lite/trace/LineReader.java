package ucm.lite.trace;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/**
 * Cuts a stream into lines without copying them out of its buffer. The buffer grows to the longest
 * line seen, up to a bound; what is longer is passed over in chunks, so memory stays bounded.
 */
final class LineReader {
  private static final int INITIAL_BYTES = 1 << 17;

  private final InputStream in;
  private final int maxLineBytes;
  private byte[] buffer;
  private int filled;
  private int next;
  private int start;
  private int end;
  private long number;
  private boolean tooLong;
  private boolean exhausted;

  LineReader(InputStream in, int maxLineBytes) {
    this.in = in;
    this.maxLineBytes = maxLineBytes;
    this.buffer = new byte[Math.min(INITIAL_BYTES, maxLineBytes + 1)];
  }

  /** Moves to the next line; false at the end. Blocks while the stream does. */
  boolean next() throws IOException {
    tooLong = false;
    start = next;
    int scan = next;
    while (true) {
      int newline = indexOfNewline(scan);
      if (newline >= 0) {
        return line(newline, newline + 1);
      }
      if (exhausted) {
        return (start < filled || tooLong) && line(filled, filled);
      }
      scan = filled - compact();
      fill();
    }
  }

  private boolean line(int lineEnd, int nextStart) {
    end = lineEnd;
    next = nextStart;
    number++;
    tooLong |= end - start > maxLineBytes;
    return true;
  }

  private int indexOfNewline(int from) {
    byte[] bytes = buffer;
    for (int i = from; i < filled; i++) {
      if (bytes[i] == '\n') {
        return i;
      }
    }
    return -1;
  }

  /** Makes room after the current line's bytes; returns by how much they moved to the front. */
  private int compact() {
    if (filled < buffer.length) {
      return 0;
    }
    int moved = start;
    if (moved > 0) {
      System.arraycopy(buffer, start, buffer, 0, filled - start);
    } else if (buffer.length <= maxLineBytes) {
      buffer = Arrays.copyOf(buffer, (int) Math.min(2L * buffer.length, maxLineBytes + 1L));
    } else {
      tooLong = true;
      moved = filled;
    }
    start = 0;
    next = 0;
    filled -= moved;
    return moved;
  }

  private void fill() throws IOException {
    int read = in.read(buffer, filled, buffer.length - filled);
    if (read < 0) {
      exhausted = true;
    } else {
      filled += read;
    }
  }

  /** The bytes of the stream; the line is from {@link #start()} to {@link #end()}. */
  byte[] buffer() {
    return buffer;
  }

  int start() {
    return start;
  }

  /** The end of the line (exclusive), its newline not included. */
  int end() {
    return end;
  }

  /** The number of the current line, 1 for the first. */
  long number() {
    return number;
  }

  /** Whether the line is longer than the bound; its bytes are then not to be looked at. */
  boolean tooLong() {
    return tooLong;
  }
}
