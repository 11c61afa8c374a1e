package ucm.lite.trace;

import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.zip.GZIPInputStream;

/**
 * One file, or standard input, opened as what its first bytes say it is: text or gzip. Other
 * compressed or binary data is refused with a hint.
 */
final class TraceInput {
  static final String STDIN_NAME = "standard input";
  private static final int HEAD_BYTES = 4096;
  private static final int GZIP_BUFFER = 1 << 16;
  private static final int[] GZIP_MAGIC = {0x1f, 0x8b};

  private final String name;
  private final Path path;
  private final boolean fromDirectory;
  private final boolean stdin;

  private TraceInput(String name, Path path, boolean fromDirectory, boolean stdin) {
    this.name = name;
    this.path = path;
    this.fromDirectory = fromDirectory;
    this.stdin = stdin;
  }

  static TraceInput file(Path path, boolean fromDirectory) {
    return new TraceInput(path.toString(), path, fromDirectory, false);
  }

  static TraceInput stdin() {
    return new TraceInput(STDIN_NAME, Path.of(""), false, true);
  }

  String name() {
    return name;
  }

  /** Whether it was found in a directory rather than named. */
  boolean fromDirectory() {
    return fromDirectory;
  }

  /** Its size in bytes, or -1 when not known. */
  long size() throws IOException {
    return !stdin && Files.isRegularFile(path) ? Files.size(path) : -1;
  }

  /**
   * Opens the bytes as they are stored: a plain file mapped into memory, all else as a stream.
   * Closing them leaves {@code stdin} itself open.
   */
  CountingInputStream open(InputStream stdinStream) throws IOException {
    return new CountingInputStream(stdin ? stdinStream : openFile(), /* closes= */ !stdin);
  }

  @SuppressWarnings("MustBeClosedChecker") // The stream closes it.
  private InputStream openFile() throws IOException {
    if (!Files.isRegularFile(path)) {
      return Files.newInputStream(path);
    }
    FileChannel channel = FileChannel.open(path);
    try {
      // Files of /proc say they are empty, and are not.
      if (channel.size() > 0 && !isGzip(channel)) {
        return MappedInputStream.of(channel);
      }
    } catch (IOException e) {
      // Not every file system maps, and not every process may map more: reading may do all the
      // same.
    }
    return Channels.newInputStream(channel);
  }

  private static boolean isGzip(FileChannel channel) throws IOException {
    byte[] head = new byte[GZIP_MAGIC.length];
    return channel.read(ByteBuffer.wrap(head), 0) == head.length && startsWith(head, GZIP_MAGIC);
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
