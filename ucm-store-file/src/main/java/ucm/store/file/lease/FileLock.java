package ucm.store.file.lease;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;

/**
 * The lock of a file, for as long as it is open. The kernel, or the file server, drops a lock when its process
 * dies, however it dies.
 */
public record FileLock(FileOperations files, int fd, NativePath path) implements AutoCloseable {

  /** How it is with the process that should hold a lock. */
  public enum Owner {
    LIVING,
    DEAD,
    UNKNOWN
  }

  private static final Logger LOG = LoggerFactory.getLogger(FileLock.class);

  /**
   * Locks an open file.
   *
   * @param fd is closed when another process has the lock, or it cannot be taken
   * @return null when another process has it
   * @throws FileException when it cannot be taken
   */
  static @Nullable FileLock take(FileOperations files, int fd, NativePath path) {
    boolean locked = false;
    try {
      locked = files.tryLock(fd, path);
      return locked ? new FileLock(files, fd, path) : null;
    } finally {
      if (!locked) {
        files.close(fd, path);
      }
    }
  }

  /** Opens a regular file to lock it; {@link FileOperations#ABSENT} when there is none. */
  static int open(FileOperations files, NativePath path) {
    return files.size(path) < 0 ? FileOperations.ABSENT : files.openWrite(path);
  }

  /** How it is with the owner of a lock. A file that is not there has no living owner. */
  public static Owner owner(FileOperations files, String file) {
    NativePath path = NativePath.of(file);
    try {
      int fd = open(files, path);
      if (fd < 0) {
        return Owner.DEAD;
      }
      try (@Nullable FileLock lock = take(files, fd, path)) {
        return lock == null ? Owner.LIVING : Owner.DEAD;
      }
    } catch (FileException e) {
      // Not ours to open, or a file system without locks.
      return Owner.UNKNOWN;
    }
  }

  /** Gives it back. Does not throw. */
  @Override
  public void close() {
    try {
      files.close(fd, path);
    } catch (FileException e) {
      LOG.debug("{}", e.getMessage());
    }
  }
}
