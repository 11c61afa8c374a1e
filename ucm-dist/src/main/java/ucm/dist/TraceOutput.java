package ucm.dist;

import java.io.BufferedOutputStream;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Where a written trace or report goes: standard output, or a file that appears under its name only when it is
 * complete. Until then it is a file of the same name with {@code .part} behind it, which is removed
 * when the work does not end well.
 */
final class TraceOutput implements AutoCloseable {

  private final @Nullable Path file;
  private final @Nullable Path part;
  private final Writer writer;
  private boolean complete;

  /**
   * Opens the output.
   *
   * @param file the file, compressed when its name ends in .gz; null for standard output
   */
  TraceOutput(@Nullable Path file, PrintWriter standardOutput) {
    this.file = file;
    if (file == null) {
      part = null;
      writer = new BufferedWriter(standardOutput);
      return;
    }
    part = file.resolveSibling(file.getFileName() + ".part");
    try {
      writer =
          new BufferedWriter(new OutputStreamWriter(stream(file, part), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + part + ": " + e, e);
    }
  }

  private static OutputStream stream(Path file, Path part) throws IOException {
    OutputStream bytes = new BufferedOutputStream(Files.newOutputStream(part));
    return file.toString().endsWith(".gz") ? new GZIPOutputStream(bytes) : bytes;
  }

  Writer writer() {
    return writer;
  }

  /** Ends the output well. */
  void complete() {
    try {
      if (file == null || part == null) {
        writer.flush();
      } else {
        writer.close();
        Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
      }
      complete = true;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file + ": " + e, e);
    }
  }

  @Override
  public void close() {
    if (complete || part == null) {
      return;
    }
    try {
      writer.close();
    } catch (IOException e) {
      // What it held is thrown away.
    }
    try {
      Files.deleteIfExists(part);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + part + ": " + e, e);
    }
  }
}
