package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.testkit.BlockBytes;

/** What a flush makes of the failures of two stages. */
final class CacheFlushTest {

  private static final BlockIds IDS = BlockBytes.ids(1, 5);

  @Test
  void aBlockThatFailedInBothStagesCountsOnceAlsoWhereTheNextStageNamesOnlySome() {
    FlushResult own = new FlushResult(0, IDS, 5, null);
    FlushResult lower = new FlushResult(0, IDS.slice(0, 2), 5, null);
    assertThat(CacheFlush.merge(own, lower).failedCount()).isEqualTo(5);
    assertThat(CacheFlush.merge(own, lower).failedBlocks()).isEqualTo(IDS);
  }

  @Test
  void blocksThatFailedInOneStageOnlyAllCount() {
    FlushResult own = new FlushResult(1, IDS.slice(0, 2), 2, null);
    FlushResult lower = new FlushResult(2, IDS.slice(2, 5), 3, null);
    assertThat(CacheFlush.merge(own, lower).failedCount()).isEqualTo(5);
    assertThat(CacheFlush.merge(own, lower).pendingBlocks()).isEqualTo(3);
  }
}
