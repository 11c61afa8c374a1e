package ucm.store.file.lease;

import java.util.HashMap;
import java.util.Map;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockPaths;

/**
 * Which of the writers of one directory live, asked of the locks of their leases, each once; see {@link
 * WriterLease}. Nothing on disk is changed. Not thread-safe.
 */
public final class WriterLocks {

  /** How it is with a writer. */
  public enum Life {
    LIVING,
    DEAD,
    UNKNOWN
  }

  private final FileOperations files;
  private final String root;
  private final Map<String, Life> known = new HashMap<>();

  public WriterLocks(FileOperations files, String root) {
    this.files = files;
    this.root = root;
  }

  /** How it is with the writer of a token. One whose lease is gone has ended. */
  public Life of(String token) {
    return known.computeIfAbsent(
        token, name -> lock(files, root + "/" + BlockPaths.WRITERS + "/" + name));
  }

  /** Whether a process holds the lock of a file. A file that is not there has no living owner. */
  static Life lock(FileOperations files, String file) {
    NativePath path = NativePath.of(file);
    try {
      int fd = files.size(path) < 0 ? FileOperations.ABSENT : files.openWrite(path);
      if (fd < 0) {
        return Life.DEAD;
      }
      try {
        return files.tryLock(fd, path) ? Life.DEAD : Life.LIVING;
      } finally {
        files.close(fd, path);
      }
    } catch (FileException e) {
      // Not ours to open, or a file system without locks.
      return Life.UNKNOWN;
    }
  }
}
