package ucm.store.cache.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.platform.device.SlotMemory;
import ucm.store.cache.fixture.TestCache;

final class PoolMemoryTest {

  // Whole huge pages: a part of one would be a mapping of its own.
  private static final int SLOTS = 35 * 256;
  private static final long STRIDE = SlotMemory.stride(5000);

  @Test
  void isOneAllocationOfPageAlignedSlotsThatIsGivenItsMemoryInTheBackground() throws IOException {
    PoolMemory memory = PoolMemory.allocate(SLOTS, STRIDE);
    try {
      assertThat(STRIDE).isEqualTo(8192);
      assertThat(memory.byteSize()).isEqualTo(SLOTS * STRIDE);
      long before = resident(memory.region().segment().address());
      assertThat(before).as("nothing is touched yet").isLessThan(SLOTS * STRIDE);
      // Bytes that were written meanwhile stay.
      memory.region().segment().set(ValueLayout.JAVA_LONG, memory.offset(SLOTS - 1) + 8, 7);
      memory.populate("ucm-cache-populate-test");
      memory.awaitPopulated();
      assertThat(memory.region().segment().get(ValueLayout.JAVA_LONG, memory.offset(SLOTS - 1) + 8))
          .isEqualTo(7);
      assertThat(resident(memory.region().segment().address()))
          .isGreaterThanOrEqualTo(SLOTS * STRIDE);
      for (int slot = 0; slot < SLOTS; slot++) {
        long start = memory.region().segment().address() + memory.offset(slot);
        assertThat(start % PoolMemory.PAGE_BYTES).isZero();
        assertThat(memory.region().segment().get(ValueLayout.JAVA_LONG, memory.offset(slot)))
            .isZero();
        memory.region().segment().set(ValueLayout.JAVA_LONG, memory.offset(slot), slot + 1);
      }
      for (int slot = 0; slot < SLOTS; slot++) {
        assertThat(memory.region().segment().get(ValueLayout.JAVA_LONG, memory.offset(slot)))
            .isEqualTo(slot + 1);
      }
    } finally {
      memory.free();
    }
  }

  @Test
  void saysHowMuchOfItLiesOnHugePages() {
    BlockLayout layout = BlockLayout.uniform(1 << 20, 1 << 20, 1 << 20);
    try (TestCache cache = new TestCache(layout, null, 16, Map.of())) {
      PoolMemory memory = cache.opened().memory;
      memory.awaitPopulated();
      assertThat(memory.hugeBytes()).isBetween(0L, memory.byteSize());
      assertThat((long) cache.metrics.gauge("cache_huge_page_bytes")).isEqualTo(memory.hugeBytes());
      assertThat(memory).hasToString("16 slots of 1048576 bytes");
    }
  }

  /** Bytes in memory of the mapping that holds an address. */
  private static long resident(long address) throws IOException {
    boolean within = false;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        long start = Long.parseUnsignedLong(line, 0, line.indexOf('-'), 16);
        long end = Long.parseUnsignedLong(line, line.indexOf('-') + 1, line.indexOf(' '), 16);
        within = start <= address && address < end;
      } else if (within && line.startsWith("Rss:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) << 10;
      }
    }
    return 0;
  }
}
