package ucm.platform.memory;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * Memory off the heap for large tables of which perhaps little is used: it reads as zeros, and takes
 * room page by page as it is written.
 */
public final class LazyMemory {

  private LazyMemory() {}

  /**
   * Maps memory. It is given back when nothing refers to it any more, so that a thread that still
   * reads it while its owner closes does no harm.
   *
   * @param byteSize 1 or more
   * @throws FileException when the kernel refuses it
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public static MemorySegment zeros(long byteSize) {
    long address = Libc.mapZeros(byteSize);
    if (address == -1) {
      throw new FileException("mmap", byteSize + " bytes", Native.getLastError());
    }
    return MemorySegment.ofAddress(address)
        .reinterpret(byteSize, Arena.ofAuto(), mapped -> Libc.munmap(mapped.address(), byteSize));
  }
}
