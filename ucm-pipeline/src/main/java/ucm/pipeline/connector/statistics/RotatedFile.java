package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Files of lines, begun again when one is full: {@code name.000001.log}, {@code name.000002.log} and so
 * on; the oldest are removed. A full one is compressed, as {@code name.000001.log.gz}, which appears as a
 * whole before the plain one is removed; of both, readers prefer the compressed one.
 *
 * <p>A line is one write, handed to the kernel at once. What a crash or a full disk leaves is at most
 * one torn line at the end, which is ended before the next. Used by one thread.
 */
final class RotatedFile implements AutoCloseable {

  private static final int GZIP_BUFFER = 1 << 16;

  private final TraceOptions options;
  private final String wanted;

  /** What every file begins with. */
  private final byte[] head;

  // From the first line on: while this writer lives, no other one has the files of this name.
  private @Nullable WriterName name;
  private @Nullable FileChannel channel;
  private long size;
  private int number;

  /**
   * Nothing is written yet.
   *
   * @param wanted the name, unless another living writer has it in this folder: see {@link WriterName}
   */
  RotatedFile(TraceOptions options, String wanted, byte[] head) {
    this.options = options;
    this.wanted = wanted;
    this.head = head;
  }

  /**
   * Appends a line.
   *
   * @param line ends with a newline
   * @throws IOException when it could not be written; the next line tries again
   */
  void append(byte[] line) throws IOException {
    try {
      FileChannel to = channel == null ? open() : channel;
      if (size > head.length && size + line.length > options.maxFileBytes()) {
        closeFile();
        compress(path(number));
        number++;
        to = open();
        removeOldest();
      }
      write(to, line);
    } catch (IOException e) {
      closeFile();
      throw e;
    }
  }

  private FileChannel open() throws IOException {
    PrivateFiles.createFolder(options.folder());
    if (name == null) {
      name = WriterName.take(options.folder(), wanted);
    }
    if (number == 0) {
      // A process of this number may have been here before, as in containers.
      number = Math.max(1, IntStream.of(numbers()).max().orElse(1));
      number += Files.exists(compressed(path(number))) ? 1 : 0;
    }
    FileChannel opened = PrivateFiles.open(path(number), StandardOpenOption.READ);
    channel = opened;
    size = opened.size();
    opened.position(size);
    if (size == 0) {
      write(opened, head);
    } else if (!endsWithNewline(opened)) {
      write(opened, new byte[] {'\n'});
    }
    return opened;
  }

  private boolean endsWithNewline(FileChannel file) throws IOException {
    ByteBuffer last = ByteBuffer.allocate(1);
    return file.read(last, size - 1) == 1 && last.get(0) == '\n';
  }

  private void write(FileChannel to, byte[] bytes) throws IOException {
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    while (buffer.hasRemaining()) {
      size += to.write(buffer);
    }
  }

  /** What cannot be compressed, because the disk is full, stays as it is: lines are worth more. */
  private static void compress(Path file) throws IOException {
    Path whole = compressed(file);
    // Hidden, so that readers of the folder pass it over meanwhile.
    Path part = file.resolveSibling("." + whole.getFileName() + ".part");
    try (OutputStream to = new GZIPOutputStream(PrivateFiles.replace(part), GZIP_BUFFER)) {
      Files.copy(file, to);
    } catch (IOException e) {
      Files.deleteIfExists(part);
      return;
    }
    Files.move(part, whole, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    Files.delete(file);
  }

  private static Path compressed(Path file) {
    return file.resolveSibling(file.getFileName() + ".gz");
  }

  private void removeOldest() throws IOException {
    for (int old : numbers()) {
      if (old <= number - options.maxFiles()) {
        Files.deleteIfExists(path(old));
        Files.deleteIfExists(compressed(path(old)));
      }
    }
  }

  private int[] numbers() throws IOException {
    Pattern pattern =
        Pattern.compile(Pattern.quote(String.valueOf(name)) + "\\.(\\d{6})\\.log(\\.gz)?");
    try (Stream<Path> files = Files.list(options.folder())) {
      return files
          .map(file -> pattern.matcher(file.getFileName().toString()))
          .filter(Matcher::matches)
          .mapToInt(match -> Integer.parseInt(match.group(1)))
          .toArray();
    }
  }

  private Path path(int of) {
    return options.folder().resolve("%s.%06d.log".formatted(name, of));
  }

  private void closeFile() throws IOException {
    FileChannel open = channel;
    channel = null;
    if (open != null) {
      open.close();
    }
  }

  @Override
  public void close() throws IOException {
    WriterName held = name;
    try {
      closeFile();
    } finally {
      if (held != null) {
        held.close();
      }
    }
  }

  @Override
  public String toString() {
    return options.folder().resolve(wanted).toString();
  }
}
