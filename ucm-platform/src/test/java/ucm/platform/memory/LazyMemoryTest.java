package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import ucm.platform.libc.FileException;

final class LazyMemoryTest {

  @Test
  void readsAsZerosAndKeepsWhatIsWritten() {
    // More than this machine need have: only what is written takes room.
    long size = 1L << 38;
    MemorySegment memory = HugeMemory.lazy(size);
    assertThat(memory.byteSize()).isEqualTo(size);
    for (long at : new long[] {0, size / 2, size - Long.BYTES}) {
      assertThat(memory.get(ValueLayout.JAVA_LONG, at)).isZero();
      memory.set(ValueLayout.JAVA_LONG, at, at + 1);
      assertThat(memory.get(ValueLayout.JAVA_LONG, at)).isEqualTo(at + 1);
    }
    assertThatThrownBy(() -> memory.get(ValueLayout.JAVA_BYTE, size))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void saysWhatTheKernelRefused() {
    assertThatThrownBy(() -> HugeMemory.lazy(1L << 60))
        .isInstanceOf(FileException.class)
        .hasMessageContaining("mmap 1152921504606846976 bytes: ")
        .hasMessageContaining("memory");
  }
}
