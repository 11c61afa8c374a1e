package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;

final class BlockBytesTest {

  private static final long HIGH = 0x0123456789ABCDEFL;
  private static final long LOW = -2;

  @Test
  void fillsAnyStretchAsTheWholeShardIsFilled() {
    MemorySegment whole = MemorySegment.ofArray(new byte[100]);
    BlockBytes.fill(whole, HIGH, LOW, 3, 0);
    for (int from = 0; from < 20; from++) {
      for (int size = 0; size < 40; size++) {
        MemorySegment part = MemorySegment.ofArray(new byte[size]);
        BlockBytes.fill(part, HIGH, LOW, 3, from);
        assertThat(part.mismatch(whole.asSlice(from, size)))
            .as("%d at %d", size, from)
            .isEqualTo(-1);
        assertThat(BlockBytes.firstWrong(part, HIGH, LOW, 3, from)).isEqualTo(-1);
      }
    }
    for (int i = 0; i < 100; i++) {
      assertThat(whole.get(ValueLayout.JAVA_BYTE, i)).isEqualTo(BlockBytes.at(HIGH, LOW, 3, i));
    }
  }

  @Test
  void findsEveryChangedByte() {
    MemorySegment memory = MemorySegment.ofArray(new byte[61]);
    for (int i = 0; i < 61; i++) {
      BlockBytes.fill(memory, HIGH, LOW, 0, 5);
      memory.set(ValueLayout.JAVA_BYTE, i, (byte) ~memory.get(ValueLayout.JAVA_BYTE, i));
      assertThat(BlockBytes.firstWrong(memory, HIGH, LOW, 0, 5)).isEqualTo(i);
    }
  }

  @Test
  void saysBlockShardOffsetAndBothBytes() {
    MemorySegment memory = MemorySegment.ofArray(new byte[32]);
    BlockBytes.fill(memory, HIGH, LOW, 7, 4096);
    assertThatCode(() -> BlockBytes.check(memory, HIGH, LOW, 7, 4096)).doesNotThrowAnyException();
    byte expected = memory.get(ValueLayout.JAVA_BYTE, 17);
    byte found = (byte) (expected ^ 1);
    memory.set(ValueLayout.JAVA_BYTE, 17, found);
    assertThatThrownBy(() -> BlockBytes.check(memory, HIGH, LOW, 7, 4096))
        .isInstanceOf(AssertionError.class)
        .hasMessage(
            "block 0123456789abcdeffffffffffffffffe shard 7 offset 4113: expected byte 0x%02x,"
                + " found 0x%02x",
            expected, found);
  }

  @Test
  void differsWithEachOfBlockShardAndOffset() {
    MemorySegment memory = MemorySegment.ofArray(new byte[64]);
    BlockBytes.fill(memory, HIGH, LOW, 1, 0);
    assertThat(BlockBytes.firstWrong(memory, HIGH + 1, LOW, 1, 0)).isBetween(0L, 8L);
    assertThat(BlockBytes.firstWrong(memory, HIGH, LOW + 1, 1, 0)).isBetween(0L, 8L);
    assertThat(BlockBytes.firstWrong(memory, LOW, HIGH, 1, 0)).isBetween(0L, 8L);
    assertThat(BlockBytes.firstWrong(memory, HIGH, LOW, 2, 0)).isBetween(0L, 8L);
    assertThat(BlockBytes.firstWrong(memory, HIGH, LOW, 1, 8)).isBetween(0L, 8L);
    assertThat(BlockBytes.firstWrong(memory, HIGH, LOW, 1, 1)).isBetween(0L, 8L);
  }

  @Test
  void givesTheSameIdsForTheSameSeed() {
    BlockIds ids = BlockBytes.ids(1, 1000);
    assertThat(ids).isEqualTo(BlockBytes.ids(1, 1000)).isNotEqualTo(BlockBytes.ids(2, 1000));
    assertThat(IntStream.range(0, 1000).mapToObj(ids::hex)).doesNotHaveDuplicates();
  }
}
