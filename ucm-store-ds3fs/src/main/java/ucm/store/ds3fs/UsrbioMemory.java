package ucm.store.ds3fs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;

/**
 * An <em>iov</em> of USRBIO: memory in {@code /dev/shm} that the 3FS client of the machine maps too, so that
 * it reads into it and writes from it. Immutable and thread-safe, except {@link #close}.
 */
final class UsrbioMemory implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Ds3fsStore.class);

  /** The {@code struct hf3fs_iov}. */
  final MemorySegment handle;

  final MemorySegment segment;

  private final Arena arena;
  private final String mountPoint;

  /**
   * Makes it.
   *
   * @param numa node its memory is taken from; -1 leaves that to the kernel
   * @throws FileException when that is refused
   */
  @SuppressWarnings("restricted") // The library says where its memory is.
  UsrbioMemory(String mountPoint, long byteSize, int numa) {
    this.mountPoint = mountPoint;
    arena = Arena.ofShared();
    handle = arena.allocate(UsrbioLibrary.IOV_BYTES, Long.BYTES);
    int result =
        UsrbioLibrary.hf3fs_iovcreate(
            handle.address(), arena.allocateFrom(mountPoint).address(), byteSize, 0, numa);
    if (result != 0) {
      arena.close();
      throw new FileException(
          "hf3fs_iovcreate of " + byteSize + " bytes for", mountPoint, Math.abs(result));
    }
    segment =
        MemorySegment.ofAddress(handle.get(ValueLayout.JAVA_LONG, UsrbioLibrary.IOV_BASE_AT))
            .reinterpret(byteSize, Arena.global(), null);
  }

  /** Whether a stretch of memory lies within. */
  boolean contains(long address, long length) {
    long at = address - segment.address();
    return at >= 0 && length <= segment.byteSize() - at;
  }

  /** Gives it back; it must not be touched any more. */
  @Override
  public void close() {
    UsrbioLibrary.hf3fs_iovdestroy(handle.address());
    arena.close();
  }

  /**
   * Leaves it where it is until the process ends, because a request that cannot be cancelled may still
   * read or write it.
   */
  void leave() {
    LOG.warn(
        "Ds3fs leaves {} bytes of shared memory for {} to the end of the process: 3FS has not"
            + " answered requests on it",
        segment.byteSize(),
        mountPoint);
  }
}
