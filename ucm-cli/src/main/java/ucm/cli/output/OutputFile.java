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
  // What is written meanwhile; the file itself where that stays what it is.
  private final @Nullable Path written;
  private final Writer writer;
  private boolean complete;

  /** Opens a file, compressed when its name ends in .gz, or the standard output where it is null. */
  public OutputFile(@Nullable Path file, PrintWriter standardOutput) {
    this.file = file;
    if (file == null) {
      written = null;
      writer = new BufferedWriter(standardOutput);
      return;
    }
    boolean replaced =
        Files.notExists(file, LinkOption.NOFOLLOW_LINKS)
            || Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
    Path to = replaced ? file.resolveSibling(file.getFileName() + ".part") : file;
    written = to;
    try {
      writer = new BufferedWriter(new OutputStreamWriter(stream(to), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw cannotWrite(to, e);
    }
  }

  private OutputStream stream(Path to) throws IOException {
    OutputStream bytes =
        to.equals(file)
            ? Files.newOutputStream(to)
            : Files.newOutputStream(
                to,
                StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING,
                StandardOpenOption.WRITE,
                LinkOption.NOFOLLOW_LINKS);
    OutputStream buffered = new BufferedOutputStream(bytes);
    return String.valueOf(file).endsWith(".gz") ? new GZIPOutputStream(buffered) : buffered;
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
      if (file == null || written == null) {
        writer.flush();
      } else {
        writer.close();
        if (!written.equals(file)) {
          Files.move(
              written, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        }
      }
      complete = true;
    } catch (IOException e) {
      throw cannotWrite(file, e);
    }
  }

  @Override
  public void close() {
    if (complete || file == null || written == null) {
      return;
    }
    try {
      writer.close();
    } catch (IOException e) {
      // What it held is thrown away.
    }
    try {
      if (!written.equals(file)) {
        Files.deleteIfExists(written);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + written + ": " + FileFault.of(e), e);
    }
  }
}
