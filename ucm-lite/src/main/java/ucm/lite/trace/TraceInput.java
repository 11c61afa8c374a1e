package ucm.lite.trace;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/**
 * One file, or standard input, opened as what its first bytes say it is: text or gzip. Other
 * compressed or binary data is refused with a hint.
 *
 * @param fromDirectory whether it was found in a directory rather than named
 */
record TraceInput(String name, Path path, boolean fromDirectory, boolean stdin) {
  private static final int HEAD_BYTES = 4096;
  private static final int GZIP_BUFFER = 1 << 16;

  /** Resolves what the user named into files to read, before the first of them is read. */
  static List<TraceInput> resolve(List<String> names) {
    if (names.isEmpty()) {
      throw new TraceException(
          "no trace named, expected files, directories, or - for standard input");
    }
    if (names.stream().filter("-"::equals).count() > 1) {
      throw new TraceException("standard input (-) is named twice, it can be read only once");
    }
    List<TraceInput> inputs = new ArrayList<>();
    for (String name : names) {
      if (name.equals("-")) {
        inputs.add(new TraceInput("standard input", Path.of(""), false, true));
      } else {
        resolve(name, inputs);
      }
    }
    return inputs;
  }

  private static void resolve(String name, List<TraceInput> inputs) {
    Path path = path(name);
    if (Files.isDirectory(path)) {
      List<Path> files = filesIn(path);
      if (files.isEmpty()) {
        throw new TraceException(
            "directory " + name + " holds no files, expected trace files directly in it");
      }
      files.forEach(file -> inputs.add(new TraceInput(file.toString(), file, true, false)));
    } else if (!Files.exists(path)) {
      throw new TraceException(
          "trace " + name + " does not exist (looked at " + path.toAbsolutePath() + ")",
          new NoSuchFileException(name));
    } else if (!Files.isReadable(path)) {
      throw new TraceException("trace " + name + " exists but may not be read by this user");
    } else {
      inputs.add(new TraceInput(name, path, false, false));
    }
  }

  private static Path path(String name) {
    if (name.isBlank()) {
      throw new TraceException("a trace has an empty name, expected a file or directory");
    }
    try {
      return Path.of(name);
    } catch (InvalidPathException e) {
      throw new TraceException("not a possible file name: " + e.getMessage(), e);
    }
  }

  /**
   * The files directly in a directory in name order, hidden ones left out. One that is there
   * compressed, too, is read once: the compressor was stopped before it removed the other.
   */
  private static List<Path> filesIn(Path directory) {
    try (Stream<Path> entries = Files.list(directory)) {
      return entries
          .filter(entry -> Files.isRegularFile(entry) && !fileName(entry).startsWith("."))
          .filter(entry -> !Files.exists(entry.resolveSibling(fileName(entry) + ".gz")))
          .sorted(Comparator.comparing(TraceInput::fileName))
          .toList();
    } catch (IOException e) {
      throw new TraceException(
          "directory " + directory + " cannot be listed: " + FileFault.of(e), e);
    }
  }

  private static String fileName(Path path) {
    Path last = path.getFileName();
    return last == null ? "" : last.toString();
  }

  /** The size of all together, or -1 when not known: files of /proc say they are empty, and are not. */
  static long size(List<TraceInput> inputs) {
    long sum = 0;
    try {
      for (TraceInput input : inputs) {
        if (input.stdin || !Files.isRegularFile(input.path)) {
          return -1;
        }
        sum += Files.size(input.path);
      }
    } catch (IOException e) {
      // The one that is gone is told of when it is read.
      return -1;
    }
    return sum == 0 ? -1 : sum;
  }

  /** Opens the bytes as they are stored. Closing them leaves {@code stdinStream} itself open. */
  Stored open(InputStream stdinStream) throws IOException {
    return new Stored(
        stdin ? stdinStream : Files.newInputStream(path),
        size(List.of(this)),
        /* closes= */ !stdin);
  }

  /**
   * The bytes of an input up to the end that it had when it was opened, counted for progress. What is
   * appended meanwhile is not read, and a file that is cut off meanwhile is an error.
   */
  static final class Stored extends FilterInputStream {
    private final long size;
    private final boolean closes;
    private long count;

    /** An input of so many bytes; -1 when not known. */
    private Stored(InputStream in, long size, boolean closes) {
      super(in);
      this.size = size;
      this.closes = closes;
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
            String.format(
                "it was cut off while it was read, from %s to %s bytes; read it again when nothing"
                    + " writes it",
                size, count));
      }
      count += Math.max(0, read);
      return read;
    }

    @Override
    public void close() throws IOException {
      if (closes) {
        super.close();
      }
    }
  }

  InputStream decode(InputStream stored) throws IOException {
    PushbackInputStream in = new PushbackInputStream(stored, HEAD_BYTES);
    byte[] head = peek(in);
    if (startsWith(head, 0x1f, 0x8b)) {
      in = new PushbackInputStream(new GZIPInputStream(in, GZIP_BUFFER), HEAD_BYTES);
      head = peek(in);
    }
    refuse(startsWith(head, 0x28, 0xb5, 0x2f, 0xfd), "zstd", "zstd -dc");
    refuse(startsWith(head, 0xfd, '7', 'z', 'X', 'Z'), "xz", "xz -dc");
    refuse(startsWith(head, 'B', 'Z', 'h'), "bzip2", "bzip2 -dc");
    refuse(startsWith(head, 'P', 'K', 3, 4), "zip", "unzip -p");
    for (int i = 0; i < head.length; i++) {
      if (head[i] == 0) {
        throw new TraceException(
            String.format(
                "%s is binary data (a zero byte at offset %s), expected text lines "
                    + "of a trace in UTF-8, plain or gzip",
                name, i));
      }
    }
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

  private void refuse(boolean compressed, String format, String command) {
    if (compressed) {
      throw new TraceException(
          String.format(
              "%s is %s data, expected text or gzip: unpack it first (%s FILE) and read the result,"
                  + " or read it from standard input (-)",
              name, format, command));
    }
  }

  private static boolean startsWith(byte[] head, int... magic) {
    for (int i = 0; i < magic.length; i++) {
      if (i == head.length || head[i] != (byte) magic[i]) {
        return false;
      }
    }
    return true;
  }

  @Override
  public String toString() {
    return name;
  }
}
