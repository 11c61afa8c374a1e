package ucm.store.ds3fs;

import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;

/**
 * Which descriptors are registered with USRBIO. One is registered with the first request on it, and
 * stays so until it is closed, so that the shards of a block that come layer by layer find it done.
 * Thread-safe.
 */
final class RegisteredFiles {

  private static final int FIRST_CAPACITY = 1024;

  private volatile List<Mount> mounts = List.of();

  // By descriptor: the number of its mount, counted from 1, or 0. Written under the lock of this.
  private volatile AtomicIntegerArray mountOf = new AtomicIntegerArray(FIRST_CAPACITY);

  /** Says which mounts there are, before any file is registered. */
  void on(List<Mount> all) {
    mounts = List.copyOf(all);
  }

  /**
   * Registers a file, unless it is.
   *
   * @param path its name
   * @return the number of the mount it is on
   * @throws FileException when that is refused
   */
  int register(int fd, NativePath path) {
    int mount = known(fd);
    return (mount > 0 ? mount : registerFirst(fd, path)) - 1;
  }

  private int known(int fd) {
    AtomicIntegerArray known = mountOf;
    return fd < known.length() ? known.get(fd) : 0;
  }

  private synchronized int registerFirst(int fd, NativePath path) {
    while (fd >= mountOf.length()) {
      grow();
    }
    int mount = mountOf.get(fd);
    if (mount == 0) {
      mount = 1 + (mounts.size() == 1 ? 0 : mountOf(path.toString()));
      int result = UsrbioLibrary.hf3fs_reg_fd(fd, 0);
      if (result > 0) {
        throw new FileException("hf3fs_reg_fd", path, result);
      }
      mountOf.set(fd, mount);
    }
    return mount;
  }

  private int mountOf(String path) {
    for (int i = 0; i < mounts.size(); i++) {
      if (mounts.get(i).holds(path)) {
        return i;
      }
    }
    throw new FileException("hf3fs_reg_fd", path, Errno.EINVAL);
  }

  private void grow() {
    AtomicIntegerArray larger = new AtomicIntegerArray(2 * mountOf.length());
    for (int i = 0; i < mountOf.length(); i++) {
      larger.set(i, mountOf.get(i));
    }
    mountOf = larger;
  }

  /** Takes back the registration of a file that is about to be closed, if it has one. */
  void deregister(int fd) {
    if (known(fd) > 0) {
      synchronized (this) {
        // Before the number can be another file's.
        mountOf.set(fd, 0);
        UsrbioLibrary.hf3fs_dereg_fd(fd);
      }
    }
  }
}
