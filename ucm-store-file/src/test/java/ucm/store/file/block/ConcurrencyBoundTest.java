package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.Task;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** How many threads are at the file system at a time, while it does not answer. */
final class ConcurrencyBoundTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);
  private static final int THREADS = 13;
  private static final int BOUND = 3;

  ConcurrencyBoundTest() {
    super(LAYOUT);
  }

  private Store open() {
    return stores.open(
        files,
        Map.of(
            "local_data_trans_concurrency",
            THREADS,
            "local_open_concurrency",
            BOUND,
            "local_commit_concurrency",
            BOUND,
            "store_health.enabled",
            false));
  }

  @Test
  void usesAsManyThreadsAsAllowedWhileTheFileSystemHoldsThem() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 64);
    Store store = open();
    stores.dump(store, ids).requireOk();
    FaultyFiles.Hang reads = files.hold(call -> call == Call.READ);
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
    Task task = store.load(memory.transfer());
    reads.awaitHeld(THREADS);
    assertThat(reads.held()).as("others").isZero();
    reads.end();
    TestStores.ended(task).requireOk();
    for (int i = 0; i < memory.shardCount(); i++) {
      memory.check(i);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"CREATE", "OPEN_READ", "RENAME"})
  void opensAndCommitsNoMoreFilesAtATimeThanAllowed(Call call) throws Exception {
    BlockIds ids = BlockBytes.ids(2, 64);
    Store store = open();
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();
    if (call == Call.OPEN_READ) {
      TestStores.ended(store.dump(memory.transfer())).requireOk();
    }
    // The lease on temporary files comes with the first block.
    stores.dump(store, BlockBytes.ids(3, 1)).requireOk();
    FaultyFiles.Hang hang = files.hold(made -> made == call);
    Task task =
        call == Call.OPEN_READ ? store.load(memory.transfer()) : store.dump(memory.transfer());
    hang.awaitHeld(BOUND);
    // No shard ends, so that one thread after the other comes and tries as well.
    Waiting.until("all threads", () -> Waiting.threads("ucm-local-io-").size() == THREADS);
    assertThat(hang.held()).as("more than allowed").isZero();
    hang.end();
    TestStores.ended(task).requireOk();
    assertThat(stores.load(store, ids).ok()).isTrue();
  }
}
