package ucm.cli.output;

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
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;
import ucm.lite.trace.FileFault;

/**
 * Where a command writes what it made: standard output, or a file. A new or regular file appears under its
 * name only when it is complete; until then it is a file of the same name that ends in {@code .part},
 * which is removed when the work does not end well. A device, a pipe or a link is written into and stays
 * what it is.
 */
public final class OutputFile implements AutoCloseable {

  /** For the help of an option that replaces an existing file. */
  public static final String REPLACES = "; an existing file is replaced";

  // Null for the standard output.
  private final @Nullable Path file;
  // What is written meanwhile; null where that is the file itself, which stays what it is.
  private final @Nullable Path part;
  private final Writer writer;
  private boolean complete;

  /** Opens a file, compressed when its name ends in .gz, or the standard output where it is null. */
  public OutputFile(@Nullable Path file, PrintWriter standardOutput) {
    this.file = file;
    part =
        file != null && isReplaced(file) ? file.resolveSibling(file.getFileName() + ".part") : null;
    try {
      writer =
          new BufferedWriter(
              file == null
                  ? standardOutput
                  : new OutputStreamWriter(stream(file, part), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw cannotWrite(part == null ? file : part, e);
    }
  }

  private static boolean isReplaced(Path file) {
    return Files.notExists(file, LinkOption.NOFOLLOW_LINKS)
        || Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }

  private static OutputStream stream(Path file, @Nullable Path part) throws IOException {
    OutputStream bytes =
        part == null
            ? Files.newOutputStream(file)
            : Files.newOutputStream(
                part,
                StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING,
                StandardOpenOption.WRITE,
                LinkOption.NOFOLLOW_LINKS);
    OutputStream buffered = new BufferedOutputStream(bytes);
    return file.toString().endsWith(".gz") ? new GZIPOutputStream(buffered) : buffered;
  }

  /** Writes a text; the file appears under its name when it is complete. */
  public static void write(@Nullable Path file, String text, PrintWriter standardOutput) {
    try (OutputFile output = new OutputFile(file, standardOutput)) {
      output.writer.write(text);
      output.complete();
    } catch (IOException e) {
      throw cannotWrite(file, e);
    }
  }

  private static UncheckedIOException cannotWrite(@Nullable Path file, IOException e) {
    return new UncheckedIOException("cannot write " + file + ": " + FileFault.of(e), e);
  }

  public Writer writer() {
    return writer;
  }

  /** Ends the output well. */
  public void complete() {
    try {
      if (file == null) {
        writer.flush();
      } else {
        writer.close();
      }
      if (file != null && part != null) {
        Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
      }
      complete = true;
    } catch (IOException e) {
      throw cannotWrite(file, e);
    }
  }

  @Override
  public void close() {
    if (complete || file == null) {
      return;
    }
    try {
      writer.close();
    } catch (IOException e) {
      // What it held is thrown away.
    }
    try {
      if (part != null) {
        Files.deleteIfExists(part);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + part + ": " + FileFault.of(e), e);
    }
  }
}
