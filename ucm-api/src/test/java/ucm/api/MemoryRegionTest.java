package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

final class MemoryRegionTest {

  @Test
  void isHostMemory() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment segment = arena.allocate(64);
      MemoryRegion region = MemoryRegion.host(segment);
      assertThat(region.isHost()).isTrue();
      assertThat(region.segment()).isSameAs(segment);
      assertThat(region.address()).isEqualTo(segment.address());
      assertThat(region.byteSize()).isEqualTo(64);
      assertThat(region.deviceId()).isEqualTo(-1);
      assertThat(region.toString()).startsWith("host memory of 64 bytes at 0x");
    }
  }

  @Test
  void isDeviceMemoryThatTheCpuCannotReach() {
    MemoryRegion region = MemoryRegion.device(3, 0x7f00, 128);
    assertThat(region.isHost()).isFalse();
    assertThat(region.deviceId()).isEqualTo(3);
    assertThat(region.address()).isEqualTo(0x7f00);
    assertThat(region.byteSize()).isEqualTo(128);
    assertThat(region).hasToString("device 3 memory of 128 bytes at 0x7f00");
    assertThatThrownBy(region::segment)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is not host memory");
  }

  @Test
  void refusesMemoryThatStoresCannotUse() {
    assertThatThrownBy(() -> MemoryRegion.host(MemorySegment.ofArray(new byte[8])))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("heap segment");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment confined = arena.allocate(8);
      assertThatThrownBy(() -> MemoryRegion.host(confined))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("shared Arena");
    }
    assertThatThrownBy(() -> MemoryRegion.device(-1, 0, 8))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device -1");
    assertThatThrownBy(() -> MemoryRegion.device(0, 0, -8))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-8 bytes");
  }
}
