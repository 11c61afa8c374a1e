package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class TransferResultTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1, 1, 2);
  private static final BlockIds IDS = BlockIds.wrap(new long[] {0, 10, 0, 11, 0, 12});
  private static final ShardOutcome OK = ShardOutcome.OK;

  @Test
  void isWellWhenEveryShardIs() {
    TransferResult result = result(null, OK, OK, OK, OK, OK, OK);
    assertThat(result.ok()).isTrue();
    assertThat(result.okCount()).isEqualTo(6);
    assertThat(result.failedCount()).isZero();
    assertThat(result.failedShards().stream()).isEmpty();
    assertThat(result.failedBlocks().isEmpty()).isTrue();
    assertThat(result.requireOk()).isSameAs(result);
    assertThat(result).hasToString("all 6 shards ok");
  }

  @Test
  void namesShardsAndBlocksThatAreNot() {
    TransferResult result =
        result(null, OK, ShardOutcome.MISSING, OK, OK, ShardOutcome.CORRUPT, ShardOutcome.EXPIRED);
    assertThat(result.ok()).isFalse();
    assertThat(result.okCount()).isEqualTo(3);
    assertThat(result.failedCount()).isEqualTo(3);
    assertThat(result.failedShards()).hasToString("{1, 4, 5}");
    assertThat(result.failedBlocks()).isEqualTo(BlockIds.wrap(new long[] {0, 10, 0, 12}));
    assertThat(result.outcome(4)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(result.cause()).isNull();
    assertThat(result)
        .hasToString(
            "3 of 6 shards not moved; first: shard 1 of block 0000000000000000000000000000000a"
                + " MISSING");
  }

  @Test
  void throwsTheFirstCauseWhenAllIsWanted() {
    Throwable cause = new StoreException("the disk is full");
    TransferResult result = result(cause, OK, OK, ShardOutcome.FAILED, OK, OK, OK);
    assertThatThrownBy(result::requireOk)
        .isInstanceOf(StoreException.class)
        .hasMessage(
            "1 of 6 shards not moved; first: shard 0 of block 0000000000000000000000000000000b"
                + " FAILED: the disk is full")
        .hasCause(cause);
  }

  private static TransferResult result(Throwable cause, ShardOutcome... outcomes) {
    MemoryRegion memory = MemoryRegion.device(0, 0, 1);
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    for (int i = 0; i < outcomes.length; i++) {
      builder.shard(IDS, i / 2, i % 2).piece(memory, 0);
    }
    TransferTask task = new TransferTask(1, builder.build());
    for (int i = 0; i < outcomes.length; i++) {
      task.end(i, outcomes[i], outcomes[i] == OK ? null : cause);
    }
    return task.result();
  }
}
