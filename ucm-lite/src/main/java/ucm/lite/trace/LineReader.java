package ucm.lite.trace;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/**
 * Cuts a stream into lines. The buffer grows to the longest line seen, up to a bound; the rest of a
 * longer one is passed over, so memory stays bounded.
 */
final class LineReader {
  private static final int CHUNK_BYTES = 1 << 16;

  private final InputStream in;
  private final int maxLineBytes;
  private final byte[] chunk = new byte[CHUNK_BYTES];
  private int at;
  private int filled;
  private byte[] line = new byte[1 << 12];
  private int length;
  private long number;

  LineReader(InputStream in, int maxLineBytes) {
    this.in = in;
    this.maxLineBytes = maxLineBytes;
  }

  /** Moves to the next line; false at the end. Blocks while the stream does. */
  boolean next() throws IOException {
    length = 0;
    boolean begun = false;
    while (true) {
      if (at == filled) {
        at = 0;
        filled = Math.max(0, in.read(chunk));
        if (filled == 0) {
          number += begun ? 1 : 0;
          return begun;
        }
      }
      begun = true;
      int end = at;
      while (end < filled && chunk[end] != '\n') {
        end++;
      }
      append(end - at);
      at = end;
      if (end < filled) {
        at++;
        number++;
        return true;
      }
    }
  }

  /** Takes bytes of the chunk; of a line that is too long, one more than the bound. */
  private void append(int count) {
    int taken = Math.min(count, maxLineBytes + 1 - length);
    if (length + taken > line.length) {
      line =
          Arrays.copyOf(
              line, Math.max(length + taken, (int) Math.min(2L * line.length, maxLineBytes + 1L)));
    }
    System.arraycopy(chunk, at, line, length, taken);
    length += taken;
  }

  /** The bytes of the line are the first ones of this array, up to {@link #length()}. */
  byte[] bytes() {
    return line;
  }

  /** How many bytes the line has, its newline not included. */
  int length() {
    return length;
  }

  /** The number of the current line, 1 for the first. */
  long number() {
    return number;
  }

  /** Whether the line is longer than the bound; its bytes are then not to be looked at. */
  boolean tooLong() {
    return length > maxLineBytes;
  }
}
