package ucm.store.file.lease;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Task;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * Two writers of the same blocks, one shard by shard, of which the other has stored the whole block when
 * only some shards are there. The clock of the stores stands still, so that nothing is given up.
 */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
final class RivalWritersTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  RivalWritersTest() {
    super(LAYOUT);
  }

  /** Its scan has ended: it asks for sizes as well. */
  private LocalFileStore opened(Map<String, Object> settings) throws InterruptedException {
    LocalFileStore store = stores.open(files, clock, settings);
    store.awaitScan();
    return store;
  }

  @AfterEach
  void leavesNoTemporaryFiles() throws Exception {
    Waiting.until("files are removed", () -> stores.temps().isEmpty());
    assertThat(stores.metrics.count("local_dump_failed_blocks")).isZero();
    assertThat(stores.metrics.count("local_given_up_blocks")).isZero();
  }

  /** One shard is found to be there, and another one was found not to be. */
  @Test
  void flushFindsABlockStoredOfWhichAShardWasNotNeeded() throws Exception {
    LocalFileStore store = opened(Map.of("local_data_trans_concurrency", 2));
    BlockIds ids = BlockBytes.ids(70, 1);
    AtomicBoolean first = new AtomicBoolean(true);
    FaultyFiles.Hang asking = files.hold(call -> call == Call.SIZE && first.getAndSet(false));
    int[] shards = {1};
    TransferMemory late = new TransferMemory(LAYOUT, Placement.SCATTERED, ids, shards).fill();
    Task notNeeded = store.dump(late.transfer());
    asking.awaitHeld(1);
    stores.dumpShard(store, ids, 0).requireOk();
    stores.dumpByAnother(Map.of(), ids);
    asking.end();
    TestStores.ended(notNeeded).requireOk();
    stores.dumpShard(store, ids, 2).requireOk();
    stores.dumpShard(store, ids, 3).requireOk();
    assertThat(stores.temps()).as("lacks a shard").hasSize(1);
    requireStored(store, ids);
  }

  /** A caller that has looked it up does not dump the rest. */
  @Test
  void flushFindsBlocksStoredOfWhichTheRestIsNotDumped() throws Exception {
    LocalFileStore store = opened(Map.of());
    BlockIds ids = begunHereAndStoredByAnother(store, 71);
    requireStored(store, ids);
  }

  @Test
  void givesNothingUpThatAnotherHasStored() throws Exception {
    LocalFileStore store = opened(Map.of());
    BlockIds ids = begunHereAndStoredByAnother(store, 72);
    clock.advance(TIMEOUT);
    requireStored(store, ids);
  }

  @Test
  void takesTheShardsThatComeAfterAFlush() throws Exception {
    LocalFileStore store = opened(Map.of());
    BlockIds ids = begunHereAndStoredByAnother(store, 73);
    requireStored(store, ids);
    for (int shard = 1; shard < LAYOUT.shardCount(); shard++) {
      stores.dumpShard(store, ids, shard).requireOk();
    }
    assertThat(store.flush(Duration.ZERO).ok()).isTrue();
  }

  /** Blocks of which one shard was dumped, and which were then looked up and found. */
  private BlockIds begunHereAndStoredByAnother(LocalFileStore store, int seed) throws Exception {
    BlockIds ids = BlockBytes.ids(seed, 20);
    stores.dumpShard(store, ids, 0).requireOk();
    stores.dumpByAnother(Map.of(), ids);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(20);
    return ids;
  }

  private void requireStored(LocalFileStore store, BlockIds ids) throws Exception {
    FlushResult flushed = store.flush(Duration.ZERO);
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.failedCount()).isZero();
    assertThat(store.durable(ids).cardinality()).isEqualTo(ids.size());
    assertThat(stores.load(store, ids).ok()).isTrue();
  }
}
