package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BlockLayoutTest {

  @Test
  void cutsABlockIntoEqualTensors() {
    BlockLayout layout = BlockLayout.uniform(4, 8, 24);
    assertThat(layout.tensorCount()).isEqualTo(2);
    assertThat(layout.tensorSize(1)).isEqualTo(4);
    assertThat(layout.tensorOffset(1)).isEqualTo(4);
    assertThat(layout.shardSize()).isEqualTo(8);
    assertThat(layout.shardCount()).isEqualTo(3);
    assertThat(layout.blockSize()).isEqualTo(24);
    assertThat(layout).hasToString("BlockLayout[block 24 = 3 shards of 8 = 2 tensors]");
  }

  @Test
  void cutsAShardIntoTensorsOfDifferentSizes() {
    long[] sizes = {5, 1, 10};
    BlockLayout layout = BlockLayout.of(sizes, 32);
    sizes[0] = 99;
    assertThat(layout.tensorSize(0)).as("a copy").isEqualTo(5);
    assertThat(layout.tensorOffset(0)).isZero();
    assertThat(layout.tensorOffset(1)).isEqualTo(5);
    assertThat(layout.tensorOffset(2)).isEqualTo(6);
    assertThat(layout.shardSize()).isEqualTo(16);
    assertThat(layout.shardCount()).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 8, 24",
    "-4, 8, 24",
    "3, 8, 24",
    "16, 8, 24",
    "4, 0, 24",
    "4, 8, 0",
    "4, 8, 20",
    "4, 8, 4",
    "4, 8, -8"
  })
  void refusesSizesThatDoNotFit(long tensor, long shard, long block) {
    assertThatThrownBy(() -> BlockLayout.uniform(tensor, shard, block))
        .isInstanceOf(IllegalArgumentException.class)
        .message()
        .containsAnyOf("block_size " + block, "shard_size " + shard);
  }

  @Test
  void refusesTensorsWithoutBytesAndShardsWithoutTensors() {
    assertThatThrownBy(() -> BlockLayout.of(new long[] {4, 0}, 4))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("tensor 1 has 0");
    assertThatThrownBy(() -> BlockLayout.of(new long[0], 4))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void isComparedByItsSizes() {
    BlockLayout layout = BlockLayout.uniform(4, 8, 24);
    assertThat(layout)
        .isEqualTo(BlockLayout.of(new long[] {4, 4}, 24))
        .hasSameHashCodeAs(BlockLayout.of(new long[] {4, 4}, 24))
        .isNotEqualTo(BlockLayout.uniform(8, 8, 24))
        .isNotEqualTo(BlockLayout.uniform(4, 8, 16))
        .isNotEqualTo(BlockLayout.of(new long[] {3, 5}, 24));
  }
}
