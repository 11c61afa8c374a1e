package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Transfer;
import ucm.testkit.TransferMemory.Placement;

final class TransferMemoryTest {

  private static final BlockLayout LAYOUT = BlockLayout.of(new long[] {5, 8, 1}, 28);
  private static final BlockIds IDS = BlockBytes.ids(1, 3);

  @ParameterizedTest
  @EnumSource
  void addressesEverySegmentOfEveryShard(Placement placement) {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, placement, IDS).fill();
    memory.check();
    Transfer transfer = memory.transfer();
    assertThat(transfer.shardCount()).isEqualTo(6);
    assertThat(transfer.pieceCount()).isEqualTo(placement == Placement.PACKED ? 1 : 3);
    for (int shard = 0; shard < 6; shard++) {
      assertThat(transfer.ids().hex(shard)).isEqualTo(IDS.hex(shard / 2));
      assertThat(transfer.shardIndex(shard)).isEqualTo(shard % 2);
      for (int segment = 0; segment < transfer.pieceCount(); segment++) {
        long expected =
            BlockBytes.at(
                IDS.high(shard / 2), IDS.low(shard / 2), shard % 2, LAYOUT.tensorOffset(segment));
        assertThat(byteAt(transfer, shard, segment, 0)).isEqualTo((byte) expected);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void noticesAChangeInsideOrBesideAnySegment(Placement placement) {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, placement, IDS);
    Transfer transfer = memory.transfer();
    for (int shard = 0; shard < 6; shard++) {
      for (int segment = 0; segment < transfer.pieceCount(); segment++) {
        memory.fill();
        int at = shard;
        change(transfer, shard, segment, transfer.pieceSize(segment) - 1);
        assertThatThrownBy(() -> memory.check(at)).isInstanceOf(AssertionError.class);
        memory.fill();
        for (long beside : new long[] {-1, transfer.pieceSize(segment)}) {
          change(transfer, shard, segment, beside);
          assertThatThrownBy(memory::check)
              .isInstanceOf(AssertionError.class)
              .hasMessageContaining("memory was changed");
          change(transfer, shard, segment, beside);
        }
        memory.check();
      }
    }
  }

  @Test
  void noticesAChangeOfWhatWasScribbled() {
    TransferMemory memory = TransferMemory.ofShards(LAYOUT, Placement.SCATTERED, IDS, 2, 1);
    memory.scribble().checkScribbled();
    change(memory.transfer(), 0, 1, 7);
    assertThatThrownBy(memory::checkScribbled)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("inside segment 1 of shard 1 of block " + IDS.hex(2));
  }

  @Test
  void refusesShardsWithoutBlocks() {
    assertThatThrownBy(() -> new TransferMemory(LAYOUT, Placement.PACKED, IDS, new int[2]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("3 blocks, 2 shards");
  }

  private static byte byteAt(Transfer transfer, int shard, int segment, long at) {
    return transfer
        .region(shard, segment)
        .segment()
        .get(ValueLayout.JAVA_BYTE, transfer.offset(shard, segment) + at);
  }

  private static void change(Transfer transfer, int shard, int segment, long at) {
    MemorySegment bytes = transfer.region(shard, segment).segment();
    byte changed = (byte) ~byteAt(transfer, shard, segment, at);
    bytes.set(ValueLayout.JAVA_BYTE, transfer.offset(shard, segment) + at, changed);
  }
}
