package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class FlushResultTest {

  private final AtomicInteger told = new AtomicInteger();
  private final FlushResult.Ledger ledger = new FlushResult.Ledger(told::incrementAndGet);

  @Test
  void namesABoundedNumberOfFailedBlocksAndCountsAll() {
    int blocks = FlushResult.Ledger.MAX_NAMED + 100;
    for (int i = 0; i < blocks; i++) {
      ledger.failed(56, i, new StoreException("not stored"));
    }
    assertThat(told).hasValue(blocks);
    FlushResult flushed = ledger.take(0);
    assertThat(flushed.failedCount()).isEqualTo(blocks);
    assertThat(flushed.failedBlocks().size()).isEqualTo(FlushResult.Ledger.MAX_NAMED);
    assertThat(ledger.take(0).ok()).isTrue();
  }

  @Test
  void tellsOnceOfABlockAlsoWhenItIsTakenBack() {
    ledger.failed(1, 2, null);
    ledger.failed(1, 2, null);
    ledger.takeBack(ledger.take(0));
    assertThat(told).hasValue(1);
    assertThat(ledger.take(0).failedBlocks()).isEqualTo(BlockIds.of(1, 2));
  }
}
