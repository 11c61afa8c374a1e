package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.BitSet;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.PromptStore;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What a flush makes of the failures of two stages. */
final class CacheFlushTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 2 * 4096);
  private static final BlockIds IDS = BlockBytes.ids(1, 5);

  /** Has no block, fails the dumps of some, and answers a flush as it was told. */
  private static final class FailingNext extends PromptStore {

    private final int refused;
    private final FlushResult flushed;

    FailingNext(int refused, FlushResult flushed) {
      this.refused = refused;
      this.flushed = flushed;
    }

    @Override
    public BitSet lookup(BlockIds ids) {
      return new BitSet();
    }

    @Override
    public Task dump(Transfer transfer) {
      TransferTask task = new TransferTask(1, transfer);
      for (int i = 0; i < transfer.shardCount(); i++) {
        BlockIds id = transfer.ids().slice(i, i + 1);
        boolean isRefused =
            IntStream.range(0, refused).anyMatch(block -> IDS.slice(block, block + 1).equals(id));
        task.end(i, isRefused ? ShardOutcome.FAILED : ShardOutcome.OK, null);
      }
      return task;
    }

    @Override
    public FlushResult flush(Duration timeout) {
      return flushed;
    }
  }

  @Test
  void aBlockThatFailedInBothStagesCountsOnceAlsoWhereTheNextStageNamesOnlySome()
      throws InterruptedException {
    FlushResult found = flush(5, new FlushResult(0, IDS.slice(0, 2), 5, null));
    assertThat(found.failedCount()).isEqualTo(5);
    assertThat(found.failedBlocks()).isEqualTo(IDS);
  }

  @Test
  void blocksThatFailedInOneStageOnlyAllCount() throws InterruptedException {
    FlushResult found = flush(2, new FlushResult(2, IDS.slice(2, 5), 3, null));
    assertThat(found.failedCount()).isEqualTo(5);
    assertThat(found.pendingBlocks()).isEqualTo(2);
  }

  private static FlushResult flush(int refused, FlushResult lower) throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, new FailingNext(refused, lower), 16, Map.of())) {
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, IDS).fill();
      cache.store.dump(memory.transfer()).await(Duration.ofSeconds(60)).requireOk();
      return cache.store.flush(Duration.ofSeconds(60));
    }
  }
}
