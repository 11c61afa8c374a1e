package ucm.cli.runtime;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.lite.trace.FileFault;
import ucm.platform.libc.Folders;

/**
 * What a command must undo before the process ends, however it ends: normally, by an error, or by
 * Ctrl-C. Last in, first undone, each once; folders at the end. After Ctrl-C the command goes on
 * until it meets what was closed under it, and may make files meanwhile: folders wait for it to
 * leave. Thread-safe.
 */
public final class Cleanup implements AutoCloseable {

  // Closed stores and streams end a command at once; this is for one that computes.
  private static final long LEAVE_SECONDS = 5;

  private static volatile boolean interrupted;

  private final CountDownLatch left = new CountDownLatch(1);
  // Guarded by this.
  private final Deque<AutoCloseable> actions = new ArrayDeque<>();
  private final Deque<AutoCloseable> folders = new ArrayDeque<>();
  private final Thread hook = new Thread(this::interrupt, "ucm-cleanup");

  public Cleanup() {
    changeHooks(() -> Runtime.getRuntime().addShutdownHook(hook));
  }

  /** After Ctrl-C the process refuses that, also before the hook has run and said so. */
  private static void changeHooks(Runnable change) {
    try {
      change.run();
    } catch (IllegalStateException e) {
      interrupted = true;
    }
  }

  /** Whether the process is on its way out because of a signal. */
  public static boolean interrupted() {
    return interrupted;
  }

  /** Closes a thing before the process ends. */
  public synchronized <T extends AutoCloseable> T add(T thing) {
    actions.push(thing);
    return thing;
  }

  /**
   * Makes a folder that only this user can read, and removes it with all it holds; and those above
   * it that were not there before, where nothing else is in them.
   */
  public synchronized Path folder(Path parent, String prefix) {
    Path existing = Folders.nearest(parent);
    try {
      Path folder = Files.createTempDirectory(Files.createDirectories(parent), prefix);
      folders.push(() -> deleteUpTo(folder, existing));
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(
          "cannot make a folder in " + parent + ": " + FileFault.of(e), e);
    }
  }

  private static void deleteUpTo(Path folder, Path existing) throws IOException {
    delete(folder);
    Path above = folder.toAbsolutePath().getParent();
    try {
      while (above != null && !above.equals(existing)) {
        Files.deleteIfExists(above);
        above = above.getParent();
      }
    } catch (DirectoryNotEmptyException _) {
      // Something else is there by now.
    }
  }

  @Override
  public void close() {
    left.countDown();
    if (!interrupted) {
      changeHooks(() -> Runtime.getRuntime().removeShutdownHook(hook));
    }
    RuntimeException failure = undo(folders, undo(actions, null));
    if (failure != null && !interrupted) {
      throw failure;
    }
  }

  /** What is left undone here is not told: the process ends anyway. */
  private void interrupt() {
    interrupted = true;
    RuntimeException _ = undo(actions, null);
    try {
      var _ = !hasFolders() || left.await(LEAVE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    RuntimeException _ = undo(folders, undo(actions, null));
    LogSetup.finish();
  }

  private synchronized boolean hasFolders() {
    return !folders.isEmpty();
  }

  /** Closes things from the first to the last, also when one fails. */
  private synchronized @Nullable RuntimeException undo(
      Deque<AutoCloseable> things, @Nullable RuntimeException failure) {
    RuntimeException first = failure;
    while (!things.isEmpty()) {
      try {
        things.pop().close();
      } catch (Exception e) {
        if (first == null) {
          first = new IllegalStateException("could not clean up: " + e.getMessage(), e);
        } else {
          first.addSuppressed(e);
        }
      }
    }
    return first;
  }

  /** Interrupts threads, drops what waits for them, and throws when one does not end in time. */
  public static void end(ExecutorService threads, long seconds, String still) {
    threads.shutdownNow().forEach(part -> ((Future<?>) part).cancel(false));
    try {
      if (!threads.awaitTermination(seconds, TimeUnit.SECONDS)) {
        throw new IllegalStateException(still + " after " + seconds + " s");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Removes a folder with all it holds. */
  public static void delete(Path folder) throws IOException {
    // After Ctrl-C the command itself may be removing the same files.
    Files.walkFileTree(
        folder,
        new FileTreeVisitor() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path dir, @Nullable IOException failure)
              throws IOException {
            Files.deleteIfExists(dir);
            return FileVisitResult.CONTINUE;
          }
        });
  }

  /** Goes through files of which others may remove some meanwhile; those are left out. */
  public static class FileTreeVisitor extends SimpleFileVisitor<Path> {

    @Override
    public FileVisitResult visitFileFailed(Path file, IOException failure) throws IOException {
      if (failure instanceof NoSuchFileException) {
        return FileVisitResult.CONTINUE;
      }
      throw failure;
    }
  }
}
