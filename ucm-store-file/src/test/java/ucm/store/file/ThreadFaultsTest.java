package ucm.store.file;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.FaultyClock;

/** A thread that runs out of memory closes its store; a shard that does so fails. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ThreadFaultsTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);

  private static final int ROOM = 4;
  private static final String IO = "ucm-local-io-";

  private final BlockIds ids = BlockBytes.ids(1, 2);

  ThreadFaultsTest() {
    super(LAYOUT);
  }

  @Test
  void theThreadOfTheDeadlinesClosesTheStoreAndEndsWhatWaits() throws Exception {
    CountDownLatch expired = new CountDownLatch(1);
    try (FaultyFiles.Hang reading = files.hold(Call.OPEN_READ, IO)) {
      stores.dumpByAnother(Map.of(), ids);
      LocalFileStore store =
          stores.open(
              files,
              new FaultyClock("ucm-local-deadline-0"),
              Map.of("timeout_ms", 500, "local_data_trans_concurrency", 1));
      // The only thread that reads is held by the first block. The second ends when the store is
      // closed.
      Task task =
          store.load(
              TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids)
                  .transfer(
                      (_, _, outcome) -> {
                        if (outcome == ShardOutcome.EXPIRED) {
                          expired.countDown();
                        }
                      }));
      awaitClosed(store);
      expired.await();
      reading.end();
      TransferResult result = TestStores.ended(task);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.OK);
      assertThat(result.outcome(LAYOUT.shardCount())).isEqualTo(ShardOutcome.EXPIRED);
    }
  }

  @Test
  void aThreadThatRemovesFilesClosesTheStore() throws Exception {
    files.breakOn("ucm-local-cleanup-", call -> true);
    LocalFileStore store = stores.open(files, Map.of("timeout_ms", 50));
    // Its other shards never come, and it is given up.
    var _ = stores.dumpShard(store, ids, 0).ok();
    awaitClosed(store);
  }

  /** In one go and shard by shard; as often as there is room for blocks, so that a leak of room shows. */
  @ParameterizedTest
  @CsvSource({
    "CREATE, false", "ALLOCATE, false", "WRITE, false", "SYNC_DATA, false",
    "CREATE, true", "ALLOCATE, true", "WRITE, true", "SYNC_DATA, true"
  })
  void aDumpThatBreaksLeavesNoFileNoDescriptorAndNoReservation(Call breaks, boolean inShards)
      throws Exception {
    BlockIds some = BlockBytes.ids(2, ROOM);
    try (TestStores stores = new TestStores(directory, SmallSpace.LAYOUT)) {
      LocalFileStore store =
          stores.open(
              files,
              SmallSpace.capacity(
                  ROOM, Map.of("durability", "fdatasync", "local_gc_enable", false)));
      store.collector().awaitFirstRound();
      files.breakOn(IO, call -> call == breaks);
      for (int i = 0; i < some.size(); i++) {
        BlockIds one = some.slice(i, i + 1);
        boolean ok =
            inShards
                ? stores.dumpShard(store, one, 0).ok() && stores.dumpShard(store, one, 1).ok()
                : stores.dump(store, one).ok();
        assertThat(ok).isFalse();
      }
      assertThat(stores.temps()).isEmpty();
      assertThat(stores.openFiles()).noneMatch(open -> open.toString().endsWith(".tmp"));
      files.before(call -> {});
      stores.dump(store, some).requireOk();
      assertThat(stores.load(store, some).ok()).isTrue();
    }
  }

  @Test
  void aShardFailsAndTheStoreGoesOn() throws Exception {
    stores.dumpByAnother(Map.of(), ids);
    LocalFileStore store = stores.open(files);
    files.breakOn(IO, call -> true);
    TransferResult result = stores.load(store, ids);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.FAILED);
    files.before(call -> {});
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  private void awaitClosed(LocalFileStore store) {
    try {
      while (true) {
        store.lookupKnown(ids);
        Thread.onSpinWait();
      }
    } catch (StoreClosedException e) {
      assertThat(e).hasMessageContaining("Local");
    }
  }
}
