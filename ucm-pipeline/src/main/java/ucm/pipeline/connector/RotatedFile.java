package ucm.pipeline.connector;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/**
 * A file of lines that is rotated away when it is full: {@code name.log} is written, {@code
 * name.1.log} is the one before, and so on; the oldest is removed.
 *
 * <p>A line is one write, handed to the kernel at once. What a crash or a full disk leaves is at most
 * one torn line at the end; whoever opens the file next ends that line first, so that no other is
 * lost with it. Used by one thread.
 */
final class RotatedFile implements AutoCloseable {

  private final TraceOptions options;
  private final String name;
  private final byte[] head;
  private @Nullable FileChannel channel;
  private long size;

  /**
   * A file that is made when the first line comes.
   *
   * @param head lines that every file begins with
   */
  RotatedFile(TraceOptions options, String name, byte[] head) {
    this.options = options;
    this.name = name;
    this.head = head;
  }

  /**
   * Appends a line.
   *
   * @param line ends with a newline
   * @throws IOException when it could not be written; the next line tries anew
   */
  void append(byte[] line) throws IOException {
    try {
      FileChannel to = channel == null ? open() : channel;
      if (size > head.length && size + line.length > options.maxFileBytes()) {
        rotate();
        to = open();
      }
      write(to, line);
    } catch (IOException e) {
      close();
      throw e;
    }
  }

  private FileChannel open() throws IOException {
    Files.createDirectories(options.folder());
    FileChannel opened =
        FileChannel.open(
            path(0), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
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

  private void rotate() throws IOException {
    close();
    for (int i = options.maxFiles() - 1; i > 0; i--) {
      if (Files.exists(path(i - 1))) {
        Files.move(path(i - 1), path(i), StandardCopyOption.REPLACE_EXISTING);
      }
    }
    Files.deleteIfExists(path(0));
  }

  private Path path(int age) {
    return options.folder().resolve(name + (age == 0 ? "" : "." + age) + ".log");
  }

  @Override
  public void close() throws IOException {
    FileChannel open = channel;
    channel = null;
    if (open != null) {
      open.close();
    }
  }

  @Override
  public String toString() {
    return path(0).toString();
  }
}
