package ucm.dist;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * What a command must undo before the process ends, however it ends: normally, by an error, or by
 * Ctrl-C. Last in, first undone, each once. Thread-safe.
 */
final class Cleanup implements AutoCloseable {

  private static volatile boolean interrupted;

  private final Deque<AutoCloseable> actions = new ArrayDeque<>();
  private final Thread hook = new Thread(this::interrupt, "ucm-cleanup");

  Cleanup() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** Whether the process is on its way out because of a signal. */
  static boolean interrupted() {
    return interrupted;
  }

  /** Closes a thing before the process ends. */
  synchronized <T extends AutoCloseable> T add(T thing) {
    actions.push(thing);
    return thing;
  }

  /** Makes a folder that only this user can read, and removes it with all it holds. */
  Path folder(Path parent, String prefix) {
    try {
      Path folder = Files.createTempDirectory(Files.createDirectories(parent), prefix);
      add(() -> delete(folder));
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(
          "cannot make a folder in " + parent + ": " + e.getMessage(), e);
    }
  }

  @Override
  public void close() {
    if (!interrupted) {
      Runtime.getRuntime().removeShutdownHook(hook);
    }
    undo();
  }

  private void interrupt() {
    interrupted = true;
    undo();
    LogSetup.finish();
  }

  private synchronized void undo() {
    RuntimeException first = null;
    while (!actions.isEmpty()) {
      first = undoOne(actions.pop(), first);
    }
    if (first != null && !interrupted) {
      throw first;
    }
  }

  private static @Nullable RuntimeException undoOne(
      AutoCloseable action, @Nullable RuntimeException first) {
    try {
      action.close();
    } catch (Exception e) {
      if (first == null) {
        return new IllegalStateException("could not clean up: " + e.getMessage(), e);
      }
      first.addSuppressed(e);
    }
    return first;
  }

  /** Removes a folder with all it holds. */
  static void delete(Path folder) throws IOException {
    Files.walkFileTree(
        folder,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          // After Ctrl-C the command itself may be removing the same files.
          @Override
          public FileVisitResult visitFileFailed(Path file, IOException failure)
              throws IOException {
            if (failure instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE;
            }
            throw failure;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path dir, @Nullable IOException failure)
              throws IOException {
            Files.deleteIfExists(dir);
            return FileVisitResult.CONTINUE;
          }
        });
  }
}
