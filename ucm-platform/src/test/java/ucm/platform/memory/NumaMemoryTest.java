package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

final class NumaMemoryTest {

  private static final Path POLICIES = Path.of("/proc/self/numa_maps");

  @Test
  void theKernelPrefersTheNodeForTouchedAndUntouchedPages() throws IOException {
    assumeTrue(Files.exists(POLICIES), "this kernel has no NUMA");
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugeMemory.map(3 * HugeMemory.PAGE_BYTES, arena);
      memory.set(ValueLayout.JAVA_BYTE, 0, (byte) 7);
      assertThat(NumaMemory.prefer(memory, 0)).isTrue();
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
      List<String> lines = Files.readAllLines(POLICIES);
      String start = Long.toHexString(memory.address()) + " ";
      assertThat(lines)
          .filteredOn(line -> line.startsWith(start))
          .singleElement()
          .asString()
          .startsWith(start + "prefer:0 ");
    }
  }

  @Test
  void anUnknownNodeAndOneThatIsNotThereChangeNothing() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugeMemory.map(4096, arena);
      assertThat(NumaMemory.prefer(memory, -1)).isFalse();
      assertThat(NumaMemory.prefer(memory, 1023)).isFalse();
      assertThat(NumaMemory.prefer(memory, 1024)).isFalse();
    }
  }
}
