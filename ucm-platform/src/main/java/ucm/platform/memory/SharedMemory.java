package ucm.platform.memory;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * Memory without a name (memfd_create of Linux) that other processes of this user map as well: they open {@code
 * /proc/PID/fd/N} with the number of this process and the descriptor. Their mappings outlive it. It reads as
 * zeros, takes room when it is touched, and needs no room in {@code /dev/shm}.
 *
 * @param descriptor as it is called in this process
 * @param bytes all of it
 */
public record SharedMemory(int descriptor, MemorySegment bytes) {

  /**
   * Makes and maps memory.
   *
   * @param arena unmaps it, and closes the descriptor, when it is closed
   * @throws FileException when the kernel refuses it
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public static SharedMemory map(long byteSize, Arena arena) {
    int fd = Libc.makeMemory("ucm", byteSize);
    if (fd < 0) {
      throw new FileException("memfd_create", byteSize + " bytes", Native.getLastError());
    }
    long address = Libc.mapLazily(fd, byteSize);
    if (address == -1) {
      FileException refused = new FileException("mmap", byteSize + " bytes", Native.getLastError());
      var _ = Libc.closeFile(fd);
      throw refused;
    }
    // Refused where shared memory has no huge pages; then it has small ones.
    var _ = Libc.adviseHugePages(address, byteSize);
    MemorySegment mapped =
        MemorySegment.ofAddress(address)
            .reinterpret(
                byteSize,
                arena,
                memory -> {
                  var _ = Libc.munmap(memory.address(), byteSize);
                  var _ = Libc.closeFile(fd);
                });
    return new SharedMemory(fd, mapped);
  }

  /** Has a part, of whole small pages, take no room until it is touched again; its bytes are lost, for all. */
  public static void giveBack(MemorySegment part) {
    var _ = Libc.giveBackShared(part.address(), part.byteSize());
  }
}
