package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * The name of the files of one writer, in a folder that others write into too. Two processes may have the
 * same number, each in its container, so a name is held by the lock of a hidden file {@code .NAME.lock}: the
 * second writer that wants one gets {@code NAME-2}. The lock ends with its process, and the next one with this
 * number goes on in its files. Thread-safe.
 */
public final class WriterName implements AutoCloseable {

  // Closing a file drops all locks that the process has on it, so none is opened twice.
  private static final Map<Path, FileChannel> HELD = new HashMap<>();

  private final Path lock;
  private final String name;

  private WriterName(Path lock, String name) {
    this.lock = lock;
    this.name = name;
  }

  /**
   * Takes a name, until it is closed or the process ends.
   *
   * @param folder made when it is missing
   * @param wanted the name unless a living writer has it
   */
  public static WriterName take(Path folder, String wanted) throws IOException {
    PrivateFiles.createFolder(folder);
    Path home = folder.toRealPath();
    for (int number = 1; ; number++) {
      String name = number == 1 ? wanted : wanted + "-" + number;
      Path lock = home.resolve("." + name + ".lock");
      synchronized (HELD) {
        if (HELD.containsKey(lock)) {
          continue;
        }
        FileChannel file = PrivateFiles.open(lock);
        Boolean isLocked = tryLock(file);
        if (isLocked == null) {
          file.close();
          // This file system has no locks: a name that no other writer has.
          return new WriterName(
              lock,
              wanted + "-" + HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt()));
        }
        if (isLocked) {
          HELD.put(lock, file);
          return new WriterName(lock, name);
        }
        file.close();
      }
    }
  }

  /** Null where files cannot be locked. */
  private static @Nullable Boolean tryLock(FileChannel file) {
    try {
      FileLock lock = file.tryLock();
      return lock != null;
    } catch (IOException e) {
      return null;
    }
  }

  @Override
  public String toString() {
    return name;
  }

  /** Gives the name back; its files stay. */
  @Override
  public void close() throws IOException {
    synchronized (HELD) {
      FileChannel file = HELD.remove(lock);
      if (file != null) {
        file.close();
      }
    }
  }
}
