package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import ucm.platform.libc.FileException;

final class HugeMemoryTest {

  private static final Path ENABLED = Path.of("/sys/kernel/mm/transparent_hugepage/enabled");

  @Test
  void isZeroAlignedAndWritableToItsLastByte() {
    for (long size :
        new long[] {1, 4096, HugeMemory.PAGE_BYTES, 3 * HugeMemory.PAGE_BYTES + 4096}) {
      try (Arena arena = Arena.ofShared()) {
        MemorySegment memory = HugeMemory.map(size, arena);
        assertThat(memory.byteSize()).isEqualTo(size);
        assertThat(memory.address() % HugeMemory.PAGE_BYTES).isZero();
        assertThat(memory.get(ValueLayout.JAVA_BYTE, size - 1)).isZero();
        memory.set(ValueLayout.JAVA_BYTE, size - 1, (byte) 7);
        assertThat(memory.get(ValueLayout.JAVA_BYTE, size - 1)).isEqualTo((byte) 7);
      }
    }
  }

  @Test
  void liesOnHugePagesWhereTheKernelAllowsThem() throws IOException {
    assumeTrue(Files.exists(ENABLED) && !Files.readString(ENABLED).contains("[never]"));
    long size = 8 * HugeMemory.PAGE_BYTES;
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugeMemory.map(size, arena);
      assertThat(HugeMemory.hugeBytes(memory)).isZero();
      memory.fill((byte) 1);
      // How many the kernel finds at this moment is its affair.
      assertThat(HugeMemory.hugeBytes(memory)).isBetween(0L, size);
    }
  }

  @Test
  void isUnmappedWithItsArena() throws IOException {
    long address;
    try (Arena arena = Arena.ofShared()) {
      address = HugeMemory.map(4 * HugeMemory.PAGE_BYTES, arena).address();
      assertThat(mapped(address)).isTrue();
    }
    assertThat(mapped(address)).isFalse();
  }

  @Test
  void whatTheKernelCannotGiveIsAnError() {
    try (Arena arena = Arena.ofShared()) {
      assertThatThrownBy(() -> HugeMemory.map(1L << 50, arena))
          .isInstanceOf(FileException.class)
          .hasMessageContaining("mmap");
    }
  }

  private static boolean mapped(long address) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      long start = Long.parseUnsignedLong(line, 0, line.indexOf('-'), 16);
      long end = Long.parseUnsignedLong(line, line.indexOf('-') + 1, line.indexOf(' '), 16);
      if (start <= address && address < end) {
        return true;
      }
    }
    return false;
  }
}
