package ucm.store.ds3fs;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How much shared memory there is. 3FS's memory takes room when it is touched, so a process that takes
 * more than there is dies later, of a signal; hence the check before.
 */
record SharedMemorySpace(long totalBytes, long freeBytes) {

  static final Path FOLDER = Path.of("/dev/shm");

  /** What there is now; nothing that would stand in the way where that cannot be told. */
  static SharedMemorySpace now() {
    try {
      FileStore store = Files.getFileStore(FOLDER);
      return new SharedMemorySpace(store.getTotalSpace(), store.getUsableSpace());
    } catch (IOException e) {
      return new SharedMemorySpace(Long.MAX_VALUE, Long.MAX_VALUE);
    }
  }

  /**
   * Says why what a worker needs does not fit, or null when it does.
   *
   * @param mounts how many 3FS are mounted that it uses
   */
  @Nullable String problem(Ds3fsConfig config, int mounts) {
    long own = Math.multiplyExact(config.sharedBytes(), (long) mounts);
    long all = Math.multiplyExact(own, (long) config.localRanks());
    if (own <= freeBytes && all <= totalBytes) {
      return null;
    }
    return ("Ds3fs needs %s bytes of %s for each worker (%s for reading and %s for writing, on %s),"
            + " %s for the %s of this node; it has %s, of which %s are free: make it larger (in a"
            + " container, its shm size), or lower iov_size, iov_read_size or iov_write_size")
        .formatted(
            own,
            FOLDER,
            config.readBytes(),
            config.writeBytes(),
            mounts + (mounts == 1 ? " mount" : " mounts"),
            all,
            config.localRanks(),
            totalBytes,
            freeBytes);
  }
}
