package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

final class DeadlineTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final Map<String, Object> ONE_THREAD = Map.of("local_data_trans_concurrency", 1);

  DeadlineTest() {
    super(LAYOUT);
  }

  @Test
  void expiresWhatIsNotBegunThoughTheFileSystemHangs() throws Exception {
    BlockIds ids = BlockBytes.ids(50, 3);
    LocalFileStore store = stores.open(files, clock, ONE_THREAD);
    stores.dump(store, ids).requireOk();
    FaultyFiles.Hang reads = files.hold(call -> call == Call.OPEN_READ);
    TransferMemory first = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids.slice(0, 1));
    Task hung = store.load(first.transfer());
    reads.awaitHeld(1);
    TransferMemory second =
        TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids.slice(1, 3)).scribble();
    Task waiting = store.load(second.transfer());
    TransferMemory third = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, BlockBytes.ids(51, 1));
    Task dump = store.dump(third.fill().transfer());
    clock.advance(TIMEOUT.minusNanos(1));
    assertThat(store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(1);
    assertThat(waiting.check()).isFalse();
    clock.advance(Duration.ofNanos(1));
    FlushResult flushed = store.flush(Duration.ZERO);
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.failedBlocks()).isEqualTo(BlockBytes.ids(51, 1));
    assertThat(flushed.cause()).hasMessageContaining("timeout_ms");
    assertThat(dump.check()).isTrue();
    TransferResult timedOut = waiting.result();
    assertThat(timedOut.okCount()).isZero();
    assertThat(timedOut.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(hung.check()).as("held by the file system").isFalse();
    reads.end();
    assertThat(TestStores.ended(hung).ok()).isTrue();
    first.check();
    store.close();
    second.checkScribbled();
  }

  /** While the file of an unfinished block is being made, or, as it is given up, removed. */
  @ParameterizedTest
  @EnumSource(names = {"CREATE", "REMOVE"})
  @Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void flushIsNotHeldByAFile(Call hanging) throws Exception {
    BlockIds ids = BlockBytes.ids(57, 2);
    LocalFileStore store = stores.open(files, clock, ONE_THREAD);
    stores.dumpShard(store, ids.slice(0, 1), 0).requireOk();
    FaultyFiles.Hang hang = files.hold(call -> call == hanging);
    TransferMemory memory = TransferMemory.ofShards(LAYOUT, Placement.PACKED, ids, 1, 0).fill();
    Task dump = null;
    if (hanging == Call.CREATE) {
      dump = store.dump(memory.transfer());
      hang.awaitHeld(1);
      assertThat(store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(2);
    } else {
      clock.advance(TIMEOUT);
      assertThat(store.flush(Duration.ZERO).failedBlocks()).isEqualTo(ids.slice(0, 1));
      hang.awaitHeld(1);
      assertThat(store.flush(Duration.ZERO).ok()).isTrue();
      assertThat(stores.temps()).hasSize(1);
    }
    hang.end();
    if (dump != null) {
      TestStores.ended(dump).requireOk();
    }
    store.close();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.in(".writers")).isEmpty();
  }

  @Test
  void givesUpABlockWhoseShardsNeverCome() throws Exception {
    BlockIds ids = BlockBytes.ids(52, 2);
    LocalFileStore store = stores.open(new FaultyFiles(), clock, Map.of());
    stores.dumpShard(store, ids, 0).requireOk();
    clock.advance(TIMEOUT.dividedBy(2));
    stores.dumpShard(store, ids.slice(0, 1), 1).requireOk();
    assertThat(store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(2);
    clock.advance(TIMEOUT.dividedBy(2));
    FlushResult second = store.flush(Duration.ZERO);
    assertThat(second.pendingBlocks()).as("counted from its last shard").isEqualTo(1);
    assertThat(second.failedBlocks()).isEqualTo(ids.slice(1, 2));
    clock.advance(TIMEOUT.dividedBy(2));
    FlushResult first = store.flush(Duration.ZERO);
    assertThat(first.pendingBlocks()).isZero();
    assertThat(first.failedBlocks()).isEqualTo(ids.slice(0, 1));
    assertThat(first.cause()).hasMessageContaining("given up");
    assertThat(stores.metrics.count("local_given_up_blocks")).isEqualTo(2);
    assertThat(stores.metrics.gauge("local_partial_blocks")).isZero();
    Waiting.until("files are removed", () -> stores.temps().isEmpty());
    stores.dump(store, ids).requireOk();
    assertThat(stores.load(store, ids).ok()).as("begun again").isTrue();
  }

  @Test
  void wakesUpByItselfToGiveUp() throws Exception {
    BlockIds ids = BlockBytes.ids(53, 1);
    LocalFileStore store = stores.open(Map.of("timeout_ms", 50));
    stores.dumpShard(store, ids, 2);
    // Only the timeout scheduler ends this wait early.
    FlushResult flushed = store.flush(TestStores.PATIENCE);
    assertThat(flushed.failedBlocks()).isEqualTo(ids);
    Waiting.until("the file is removed", () -> stores.temps().isEmpty());
  }

  @Test
  void flushWaitsForDumpsUnderWay() throws Exception {
    BlockIds ids = BlockBytes.ids(54, 1);
    LocalFileStore store = stores.open(files, ONE_THREAD);
    FaultyFiles.Hang renames = files.hold(call -> call == Call.RENAME);
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids).fill();
    Task dump = store.dump(memory.transfer());
    renames.awaitHeld(1);
    FlushResult before = store.flush(Duration.ZERO);
    assertThat(before.pendingBlocks()).isEqualTo(1);
    assertThat(before.failedCount()).isZero();
    assertThat(dump.check()).isFalse();
    renames.end();
    assertThat(store.flush(TestStores.PATIENCE).ok()).isTrue();
    assertThat(store.durable(ids).get(0)).isTrue();
  }

  @Test
  void closesWithoutATraceOfUnfinishedBlocks() throws Exception {
    LocalFileStore store = stores.open();
    stores.dumpShard(store, BlockBytes.ids(55, 20), 3).requireOk();
    assertThat(stores.temps()).hasSize(20);
    store.close();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.in(".writers")).isEmpty();
    assertThat(stores.openFiles()).isEmpty();
    assertThat(stores.metrics.count("local_given_up_blocks")).isEqualTo(20);
  }
}
