package ucm.platform.memory;

import com.sun.jna.Native;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * Large memory on pages of 2 MiB where the kernel has them, so that a copy of it takes few entries of the
 * processor's TLB and few page faults.
 *
 * <p>Pages that the administrator reserved ({@code vm.nr_hugepages}, hugetlbfs of the kernel's
 * documentation) are taken when there are enough for all of it. Otherwise the kernel is asked for
 * transparent ones ({@code madvise}, transhuge of the same), which it gives as it can when the memory is
 * touched, unless {@code /sys/kernel/mm/transparent_hugepage/enabled} says {@code never}.
 */
public final class HugeMemory {

  /** Bytes of a huge page. */
  public static final long PAGE_BYTES = 2L << 20;

  private static final Path MAPPINGS = Path.of("/proc/self/smaps");
  private static final long KIB = 1024;

  private HugeMemory() {}

  /**
   * Maps memory that starts on a multiple of {@value #PAGE_BYTES}. It reads as zeros, and takes room when
   * it is touched.
   *
   * @param arena unmaps it when it is closed
   * @throws FileException when the kernel refuses it
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public static MemorySegment map(long byteSize, Arena arena) {
    long reserved = Math.ceilDiv(byteSize, PAGE_BYTES) * PAGE_BYTES;
    // Less than a huge page would take one for itself.
    long address = byteSize < PAGE_BYTES ? -1 : Libc.mapHugePages(reserved);
    if (address != -1) {
      return MemorySegment.ofAddress(address)
          .reinterpret(byteSize, arena, mapped -> Libc.munmap(mapped.address(), reserved));
    }
    return mapReturnable(byteSize, arena);
  }

  /**
   * The same without pages that the administrator reserved, so that parts of it can be {@linkplain #giveBack
   * given back}.
   *
   * @throws FileException when the kernel refuses it
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public static MemorySegment mapReturnable(long byteSize, Arena arena) {
    long reserved = Math.ceilDiv(byteSize, PAGE_BYTES) * PAGE_BYTES;
    // One page more, so that there is a multiple in it.
    long mapped = reserved + PAGE_BYTES;
    long start = Libc.mapMemory(mapped);
    if (start == -1) {
      throw new FileException("mmap", byteSize + " bytes", Native.getLastError());
    }
    long address = Math.ceilDiv(start, PAGE_BYTES) * PAGE_BYTES;
    long whole = byteSize / PAGE_BYTES * PAGE_BYTES;
    if (whole > 0) {
      // Refused by kernels built without them; then the pages are small ones.
      var _ = Libc.adviseHugePages(address, whole);
    }
    return MemorySegment.ofAddress(address)
        .reinterpret(byteSize, arena, _ -> Libc.munmap(start, mapped));
  }

  /** Has a part, of whole small pages, take no room until it is touched again; its bytes are lost. */
  public static void giveBack(MemorySegment part) {
    var _ = Libc.giveBack(part.address(), part.byteSize());
  }

  /**
   * Maps memory for a large table of which perhaps little is used, on small pages: it reads as zeros, and
   * takes room as it is written. It is given back when nothing refers to it any more, so that a thread
   * that still reads it while its owner closes does no harm.
   *
   * @param byteSize 1 or more
   * @throws FileException when the kernel refuses it
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public static MemorySegment lazy(long byteSize) {
    long address = Libc.mapZeros(byteSize);
    if (address == -1) {
      throw new FileException("mmap", byteSize + " bytes", Native.getLastError());
    }
    return MemorySegment.ofAddress(address)
        .reinterpret(byteSize, Arena.ofAuto(), mapped -> Libc.munmap(mapped.address(), byteSize));
  }

  /**
   * Has the kernel give memory its pages, which leaves the bytes as they are, also while others write them.
   *
   * @return false when it does not: it is too old, or has too few pages
   */
  public static boolean populate(MemorySegment memory) {
    return Libc.populate(memory.address(), memory.byteSize()) == 0;
  }

  /**
   * How many bytes of memory that was touched lie on huge pages, as the kernel counts them in {@code
   * /proc/self/smaps}; 0 where that cannot be read.
   */
  public static long hugeBytes(MemorySegment segment) {
    if (segment.byteSize() < PAGE_BYTES) {
      return 0;
    }
    long from = segment.address();
    long to = from + segment.byteSize();
    long huge = 0;
    boolean within = false;
    try (BufferedReader lines = Files.newBufferedReader(MAPPINGS)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        int dash = line.indexOf('-');
        int space = line.indexOf(' ');
        if (dash > 0 && dash < space && line.indexOf(':') > space) {
          long start = Long.parseUnsignedLong(line, 0, dash, 16);
          long end = Long.parseUnsignedLong(line, dash + 1, space, 16);
          within = start < to && end > from;
        } else if (within
            && (line.startsWith("AnonHugePages:") || line.startsWith("Private_Hugetlb:"))) {
          String number = line.substring(line.indexOf(':') + 1, line.lastIndexOf(' ')).strip();
          huge += Long.parseLong(number) * KIB;
        }
      }
    } catch (IOException e) {
      return 0;
    }
    // A mapping beside it with the same properties may be counted with it.
    return Math.min(huge, segment.byteSize());
  }
}
