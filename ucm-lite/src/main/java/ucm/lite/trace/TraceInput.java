package ucm.lite.trace;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;

/**
 * One file, or standard input, opened as what its first bytes say it is: text or gzip. Other
 * compressed or binary data is refused with a hint.
 *
 * @param fromDirectory whether it was found in a directory rather than named
 */
record TraceInput(String name, Path path, boolean fromDirectory, boolean stdin) {
  static final String STDIN_NAME = "standard input";
  private static final int HEAD_BYTES = 4096;
  private static final int GZIP_BUFFER = 1 << 16;
  private static final int[] GZIP_MAGIC = {0x1f, 0x8b};

  static TraceInput file(Path path, boolean fromDirectory) {
    return new TraceInput(path.toString(), path, fromDirectory, false);
  }

  static TraceInput ofStdin() {
    return new TraceInput(STDIN_NAME, Path.of(""), false, true);
  }

  /** Its size in bytes, or -1 when not known: files of /proc say they are empty, and are not. */
  long size() throws IOException {
    long size = !stdin && Files.isRegularFile(path) ? Files.size(path) : -1;
    return size == 0 ? -1 : size;
  }

  /** Opens the bytes as they are stored. Closing them leaves {@code stdin} itself open. */
  CountingInputStream open(InputStream stdinStream) throws IOException {
    return new CountingInputStream(
        stdin ? new Unclosed(stdinStream) : Files.newInputStream(path), size());
  }

  private static final class Unclosed extends FilterInputStream {
    Unclosed(InputStream in) {
      super(in);
    }

    @Override
    public void close() {}
  }

  /** Turns the stored bytes into text. */
  InputStream decode(InputStream stored) throws IOException {
    PushbackInputStream in = new PushbackInputStream(stored, HEAD_BYTES);
    byte[] head = peek(in);
    if (startsWith(head, GZIP_MAGIC)) {
      in = new PushbackInputStream(new GZIPInputStream(in, GZIP_BUFFER), HEAD_BYTES);
      head = peek(in);
    }
    refuseOtherCompression(head);
    refuseBinary(head);
    if (startsWith(head, 0xef, 0xbb, 0xbf)) {
      in.skipNBytes(3);
    }
    return in;
  }

  private static byte[] peek(PushbackInputStream in) throws IOException {
    byte[] head = in.readNBytes(HEAD_BYTES);
    in.unread(head);
    return head;
  }

  private void refuseOtherCompression(byte[] head) {
    if (startsWith(head, 0x28, 0xb5, 0x2f, 0xfd)) {
      throw compressed("zstd", "zstd -dc");
    }
    if (startsWith(head, 0xfd, '7', 'z', 'X', 'Z')) {
      throw compressed("xz", "xz -dc");
    }
    if (startsWith(head, 'B', 'Z', 'h')) {
      throw compressed("bzip2", "bzip2 -dc");
    }
    if (startsWith(head, 'P', 'K', 3, 4)) {
      throw compressed("zip", "unzip -p");
    }
  }

  private TraceException compressed(String format, String command) {
    return new TraceException(
        String.format(
            "%s is %s data, expected text or gzip: unpack it first (%s FILE) and read the result,"
                + " or read it from standard input (-)",
            name, format, command));
  }

  private void refuseBinary(byte[] head) {
    for (int i = 0; i < head.length; i++) {
      if (head[i] == 0) {
        throw new TraceException(
            name
                + " is binary data (a zero byte at offset "
                + i
                + "), expected text lines of a trace in UTF-8, plain or gzip");
      }
    }
  }

  private static boolean startsWith(byte[] head, int... magic) {
    if (head.length < magic.length) {
      return false;
    }
    byte[] expected = new byte[magic.length];
    for (int i = 0; i < magic.length; i++) {
      expected[i] = (byte) magic[i];
    }
    return Arrays.equals(head, 0, magic.length, expected, 0, magic.length);
  }

  @Override
  public String toString() {
    return name;
  }
}
