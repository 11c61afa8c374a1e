package ucm.store.posix;

import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.store.common.BlockPaths;
import ucm.store.common.Errno;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;
import ucm.store.common.NativePath;

/**
 * Which of the processes that share the directories collects: the one that holds the lock of the file
 * {@code .gc/lock} in each of them. The kernel, or the file server, drops a lock when its process dies,
 * however it dies, and another process gets it when it next asks. The files stay. Not thread-safe.
 */
final class CollectorLease implements AutoCloseable {

  /** A locked file. */
  private record Lock(int fd, NativePath path) {}

  private static final Logger LOG = LoggerFactory.getLogger(CollectorLease.class);
  private static final String LOCK = "lock";

  private final FileSeam files;
  private final BlockPaths paths;
  // All processes take the locks in the same order, so that one of them gets all.
  private final List<Integer> order;
  private final List<Lock> held = new ArrayList<>();
  private boolean warned;

  CollectorLease(FileSeam files, BlockPaths paths) {
    this.files = files;
    this.paths = paths;
    List<Integer> backends = new ArrayList<>();
    for (int i = 0; i < paths.backends().size(); i++) {
      backends.add(i);
    }
    backends.sort((a, b) -> paths.backends().get(a).compareTo(paths.backends().get(b)));
    this.order = backends;
  }

  /** Takes the lease, unless another process has it; true when this one has it now. */
  boolean tryHold() {
    try {
      while (held.size() < order.size()) {
        if (!tryLock(order.get(held.size()))) {
          close();
          return false;
        }
      }
      return true;
    } catch (FileException e) {
      close();
      if (!warned) {
        warned = true;
        LOG.warn(
            "Posix collects nothing, as it cannot lock a file in .gc of storage_backends: {}",
            e.getMessage());
      }
      return false;
    }
  }

  private boolean tryLock(int backend) {
    files.makeFolder(paths.inBackend(new NativePath(), backend, BlockPaths.GC));
    NativePath path = paths.inBackend(new NativePath(), backend, BlockPaths.GC, LOCK);
    int fd = files.openWrite(path);
    if (fd == FileSeam.ABSENT) {
      fd = create(path);
    }
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    boolean locked = false;
    try {
      locked = files.tryLock(fd, path);
    } finally {
      if (!locked) {
        files.close(fd, path);
      }
    }
    if (locked) {
      held.add(new Lock(fd, path));
    }
    return locked;
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

  /** Gives the lease back. */
  @Override
  public void close() {
    for (Lock lock : held) {
      try {
        files.close(lock.fd(), lock.path());
      } catch (FileException e) {
        LOG.debug("Posix: {}", e.getMessage());
      }
    }
    held.clear();
  }
}
