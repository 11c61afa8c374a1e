package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;
import ucm.testkit.LeakCheck;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Orders of events of several threads that chance brings about once in many runs, by force. */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
final class RaceTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final Map<String, Object> TWO_THREADS = Map.of("local_data_trans_concurrency", 2);

  @TempDir private Path directory;

  private final LeakCheck leaks = LeakCheck.start();
  private final ManualClock clock = new ManualClock();
  private final FaultyFiles files = new FaultyFiles();
  private final FaultyFiles.Hang hang = new FaultyFiles.Hang();
  private TestStores stores;

  /** Its scan has ended: it asks for sizes as well. */
  private LocalFileStore opened(Map<String, Object> settings) throws InterruptedException {
    stores = new TestStores(directory, LAYOUT);
    LocalFileStore store = stores.open(files, clock, settings);
    store.awaitScan();
    return store;
  }

  @AfterEach
  void leavesNothing() {
    hang.end();
    stores.close();
    leaks.requireNoThread();
    leaks.requireNoFileOf(directory);
  }

  /** Holds the thread that makes a call, the nth of its kind from now on. */
  private void hold(Call held, int nth) {
    AtomicInteger calls = new AtomicInteger();
    files.before(
        call -> {
          if (call == held && calls.incrementAndGet() == nth) {
            hang.enter();
          }
        });
  }

  @Test
  void damagedBlockStaysAMissWhenAnotherReadsItsGoodPart() throws Exception {
    LocalFileStore store = opened(TWO_THREADS);
    BlockIds ids = BlockBytes.ids(90, 1);
    stores.dump(store, ids).requireOk();
    byte[] bytes = Files.readAllBytes(stores.file(ids, 0));
    bytes[2 * 1024] ^= 1;
    Files.write(stores.file(ids, 0), bytes);
    // The first one is that of the footer.
    hold(Call.READ, 2);
    TransferMemory good = shard(ids, 0);
    Task reading = store.load(good.transfer());
    hang.awaitHeld(1);
    assertThat(stores.loadShard(store, ids, 2).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    hang.end();
    TestStores.ended(reading).requireOk();
    good.check(0);
    assertThat(store.lookupKnown(ids).isEmpty()).isTrue();
    assertThat(store.lookup(ids).isEmpty()).isTrue();
    assertThat(stores.metrics.count("local_corrupt_blocks")).isEqualTo(1);
  }

  @Test
  void flushWaitsForABlockThatALaterTaskBegan() throws Exception {
    LocalFileStore store = opened(TWO_THREADS);
    BlockIds ids = BlockBytes.ids(91, 1);
    hold(Call.SIZE, 1);
    Task first = store.dump(shard(ids, 0).fill().transfer());
    hang.awaitHeld(1);
    AtomicReference<FlushResult> flushed = new AtomicReference<>();
    Thread flushing =
        Thread.ofPlatform().start(() -> flushed.set(flush(store, Duration.ofSeconds(2))));
    awaitWaiting(flushing);
    stores.dumpShard(store, ids, 1).requireOk();
    hang.end();
    TestStores.ended(first).requireOk();
    flushing.join();
    assertThat(flushed.get().pendingBlocks()).as("lacks two shards").isEqualTo(1);
  }

  @Test
  void flushSeesWhatIsFoundToBeStoredWhileItWaits() throws Exception {
    LocalFileStore store = opened(Map.of());
    BlockIds ids = BlockBytes.ids(92, 1);
    stores.dumpShard(store, ids, 0).requireOk();
    AtomicReference<FlushResult> flushed = new AtomicReference<>();
    Thread flushing =
        Thread.ofPlatform().start(() -> flushed.set(flush(store, Duration.ofDays(1))));
    awaitWaiting(flushing);
    stores.dumpByAnother(Map.of(), ids);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(1);
    flushing.join();
    assertThat(flushed.get().ok()).isTrue();
  }

  /** A listener was told that a shard is taken over, and then what had it failed. */
  @Test
  void neverWritesMemoryThatWasGivenBack() throws Exception {
    LocalFileStore store = opened(Map.of());
    BlockIds ids = BlockBytes.ids(93, 1);
    stores.dumpShard(store, ids, 0).requireOk();
    TransferMemory whole = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();
    Task dump =
        store.dump(
            whole.transfer(
                (transfer, shard, outcome) -> {
                  if (shard == 0) {
                    assertThat(outcome).isEqualTo(ShardOutcome.OK);
                    whole.scribble();
                    clock.advance(TIMEOUT);
                    assertThat(flush(store, Duration.ZERO).failedBlocks()).isEqualTo(ids);
                  }
                }));
    TransferResult result = TestStores.ended(dump);
    assertThat(result.okCount()).isEqualTo(1);
    assertThat(result.cause()).hasMessageContaining(ids.hex(0)).hasMessageContaining("again");
    FlushResult flushed = store.flush(Duration.ZERO);
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.failedBlocks()).isEqualTo(ids);
    assertThat(store.lookup(ids).isEmpty()).isTrue();
    stores.dump(store, ids).requireOk();
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  @Test
  void takesTheNextTransferFromWhoIsToldThatTheLastOneEnded() throws Exception {
    LocalFileStore store =
        opened(Map.of("running_queue_depth", 4, "local_data_trans_concurrency", 1));
    CompletableFuture<Task> next = new CompletableFuture<>();
    BlockIds ids = BlockBytes.ids(94, 8);
    TransferMemory second = shard(ids.slice(4, 8), 1).fill();
    hold(Call.SIZE, 1);
    Task first = store.dump(shard(ids.slice(0, 4), 1).fill().transfer());
    hang.awaitHeld(1);
    first.whenTerminal(
        () -> {
          try {
            next.complete(store.dump(second.transfer()));
          } catch (QueueFullException e) {
            next.completeExceptionally(e);
          }
        });
    hang.end();
    TestStores.ended(next.get()).requireOk();
  }

  @Test
  void nothingOfARefusedTransferHasEnded() throws Exception {
    Path failing = Files.createDirectory(directory.resolve("failing"));
    Path healthy = Files.createDirectory(directory.resolve("healthy"));
    List<String> directories = List.of(failing.toString(), healthy.toString());
    LocalFileStore store =
        opened(
            Map.of(
                "storage_backends", directories,
                "waiting_queue_depth", 1,
                "local_data_trans_concurrency", 1));
    BlockPaths paths = new BlockPaths("Local", directories, 3);
    BlockIds ids = BlockBytes.ids(95, 64);
    BitSet inWell = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      inWell.set(i, paths.directoryOf(ids.high(i), ids.low(i)) == 1);
    }
    BlockIds healthyIds = ids.select(0, inWell);
    hold(Call.SIZE, 1);
    Task running = dump(store, healthyIds.slice(0, 1));
    hang.awaitHeld(1);
    Task waiting = dump(store, healthyIds.slice(1, 2));
    for (int i = 0; i < 8; i++) {
      store.volumes().get(0).failedInBackground(new StoreException("failure " + i));
    }
    AtomicInteger ended = new AtomicInteger();
    TransferMemory both = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();
    assertThatThrownBy(
            () -> store.dump(both.transfer((transfer, i, outcome) -> ended.incrementAndGet())))
        .isInstanceOf(QueueFullException.class);
    hang.end();
    TestStores.ended(running).requireOk();
    TestStores.ended(waiting).requireOk();
    assertThat(ended.get()).isZero();
    assertThat(store.flush(TIMEOUT).ok()).isTrue();
    assertThat(stores.metrics.gauge("local_open_shards")).isZero();
  }

  /** Memory of one shard of each block. */
  private static TransferMemory shard(BlockIds ids, int shard) {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    return new TransferMemory(LAYOUT, Placement.SCATTERED, ids, shards);
  }

  private static Task dump(LocalFileStore store, BlockIds ids) {
    return store.dump(TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill().transfer());
  }

  private static FlushResult flush(LocalFileStore store, Duration timeout) {
    try {
      return store.flush(timeout);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void awaitWaiting(Thread thread) throws Exception {
    Waiting.until("the thread waits", () -> thread.getState() == Thread.State.TIMED_WAITING);
  }
}
