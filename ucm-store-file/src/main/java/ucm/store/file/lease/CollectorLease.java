package ucm.store.file.lease;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;

/**
 * Which of the processes that share a directory collects there: the one that holds the lock of the file {@code
 * .gc/lock} in it. The kernel, or the file server, drops a lock when its process dies, however it dies, and another
 * process gets it when it next asks. The file stays, and names the last holder for messages. Who takes several takes
 * them in the order of the names of the directories, so that one process gets all. Thread-safe.
 */
public final class CollectorLease {

  private static final Logger LOG = LoggerFactory.getLogger(CollectorLease.class);
  private static final String LOCK = "lock";

  // Bytes of the line in the locked file, always as many, so that a shorter one leaves nothing of a
  // longer one.
  private static final int LINE_BYTES = 64;
  private static final Pattern LINE = Pattern.compile("process ([0-9]{1,10}) on ([^ ]+) *\n");

  private final FileOperations files;
  private final BlockPaths paths;
  private final int directory;

  // Guarded by this.
  private @Nullable FileLock held;
  private boolean isWarned;
  private boolean closed;

  /** Not held yet. */
  public CollectorLease(FileOperations files, BlockPaths paths, int directory) {
    this.files = files;
    this.paths = paths;
    this.directory = directory;
  }

  /** Whether this process has it. */
  public synchronized boolean isHeld() {
    return held != null;
  }

  /**
   * Takes it for a single round.
   *
   * @throws StoreException when another process has it, or it cannot be taken
   */
  public void hold() {
    if (!tryLock()) {
      String root = paths.directories().get(directory);
      throw new StoreException(
          ("another process removes cold blocks in %s: %s; it does so until it ends, by the"
                  + " capacity that its configuration names. Change that, or stop it")
              .formatted(root, holder(files, root)));
    }
  }

  /** Takes it; false when another process has it. After a failure no process has it. */
  public boolean tryHold() {
    try {
      return isHeld() || tryLock();
    } catch (FileException e) {
      synchronized (this) {
        if (isWarned) {
          return true;
        }
        isWarned = true;
      }
      LOG.warn(
          "{} collects nothing there, as it cannot lock a file in .gc of storage_backends: {}",
          paths.store(),
          e.getMessage());
      return true;
    }
  }

  private boolean tryLock() {
    files.makeFolder(paths.inDirectory(directory, BlockPaths.GC));
    NativePath path = paths.inDirectory(directory, BlockPaths.GC, LOCK);
    if (files.size(path) == FileOperations.OTHER_TYPE) {
      throw new FileException("open as a regular file", path, Errno.EINVAL);
    }
    int fd = files.openWrite(path);
    if (fd == FileOperations.ABSENT) {
      fd = create(path);
    }
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    FileLock lock = FileLock.take(files, fd, path);
    if (lock == null) {
      return false;
    }
    sign(fd, path);
    synchronized (this) {
      if (!closed) {
        held = lock;
        return true;
      }
    }
    // The file system answered only after the lease was given back.
    lock.close();
    return false;
  }

  /** Names the holder of the lock; nothing depends on it. */
  private void sign(int fd, NativePath path) {
    try {
      String text = "process " + ProcessHandle.current().pid() + " on " + WriterLease.host();
      String line = text + " ".repeat(LINE_BYTES - 1 - text.length()) + "\n";
      SmallFile.write(files, fd, path, line, 0);
    } catch (FileException e) {
      LOG.debug("{}: {}", paths.store(), e.getMessage());
    }
  }

  private int create(NativePath path) {
    try {
      return files.create(path);
    } catch (FileException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      return files.openWrite(path);
    }
  }

  /** Gives it back. */
  public void release() {
    FileLock lock;
    synchronized (this) {
      lock = held;
      held = null;
    }
    if (lock != null) {
      lock.close();
    }
  }

  /** Takes it no more; what is held is to be given back. */
  public synchronized void stop() {
    closed = true;
  }

  /** Names the process that collects in a directory, for messages. */
  public static String holder(FileOperations files, String root) {
    String path = root + "/" + BlockPaths.GC + "/" + LOCK;
    String who = lastHolder(files, NativePath.of(path));
    return switch (FileLock.owner(files, path)) {
      case LIVING -> who;
      case DEAD -> "none";
      case UNKNOWN -> "cannot be asked; the last one known is " + who;
    };
  }

  private static String lastHolder(FileOperations files, NativePath file) {
    try {
      byte[] bytes = SmallFile.read(files, file, LINE_BYTES);
      Matcher line =
          LINE.matcher(bytes == null ? "" : new String(bytes, StandardCharsets.US_ASCII));
      if (!line.matches()) {
        return "a process that does not tell its name";
      }
      String found = "process " + line.group(1) + " on " + line.group(2);
      if (!line.group(2).equals(WriterLease.host())) {
        return found;
      }
      boolean lives = ProcessHandle.of(Long.parseLong(line.group(1))).isPresent();
      return found + (lives ? ", which lives" : ", which is not seen from here");
    } catch (FileException e) {
      return "a process that cannot be told";
    }
  }
}
