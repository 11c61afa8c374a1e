package ucm.store.file.space;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;
import static ucm.store.file.fixture.SmallSpace.capacity;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.volume.FreeSpace;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** The account of used bytes, the capacity and the floor. */
final class SpaceLimitTest extends InOneDirectory {

  private static final Map<String, Object> NO_GC = Map.of("local_gc_enable", false);

  SpaceLimitTest() {
    super(LAYOUT);
  }

  @Test
  void countsTheBytesOfAllDirectoriesAlsoAfterARestart() throws Exception {
    Map<String, Object> settings =
        capacity(
            1000,
            Map.of(
                "storage_backends", List.of(directory + "/a", directory + "/b", directory + "/c")));
    BlockIds ids = BlockBytes.ids(1, 60);
    LocalFileStore store = stores.open(settings);
    stores.dump(store, ids).requireOk();
    assertThat(stores.metrics.gauge("local_used_bytes"))
        .as("without a scan")
        .isEqualTo(60.0 * FILE)
        .isEqualTo((double) SmallSpace.bytes(directory));
    assertThat(stores.metrics.gauge("local_capacity_bytes")).isEqualTo(1000.0 * FILE);
    store.collector().makeRound();
    assertThat(stores.metrics.gauge("local_used_bytes")).as("counted").isEqualTo(60.0 * FILE);
    store.close();
    for (String name : List.of("a", "b", "c")) {
      assertThat(SmallSpace.blocks(directory.resolve(name))).hasSizeGreaterThan(5);
    }
    // Another process removes a block and adds a file without a footer, one with an odd size, and a
    // temporary one.
    Path gone = SmallSpace.file(directory, ids, 0);
    Files.delete(gone);
    Files.write(gone.resolveSibling("0".repeat(32)), new byte[8192]);
    Files.write(gone.resolveSibling("1".repeat(32)), new byte[5000]);
    Files.write(gone.resolveSibling("2".repeat(32) + ".tmp"), new byte[1]);
    stores.open(settings).collector().makeRound();
    assertThat(stores.metrics.gauge("local_used_bytes"))
        .isEqualTo(59.0 * FILE + 8192 + 8192 + 4096)
        .isEqualTo((double) SmallSpace.bytes(directory));
  }

  @Test
  void believesWhatWasRememberedUntilAllFoldersAreScanned() {
    UsedSpace used = new UsedSpace(2);
    used.remember(1000);
    assertThat(used.scanned(0, 300, used.changes(0))).isTrue();
    assertThat(used.used()).isEqualTo(1000);
    assertThat(used.reserve(100, 1100)).isTrue();
    assertThat(used.reserve(1, 1100)).isFalse();
    used.beginCommit(1);
    assertThat(used.scanned(1, 900, used.changes(1))).as("getting its name").isFalse();
    used.endCommit(1, 100, true);
    assertThat(used.used()).isEqualTo(1100);
    int before = used.changes(1);
    used.removed(1, 40);
    assertThat(used.scanned(1, 900, before)).as("changed meanwhile").isFalse();
    assertThat(used.scanned(1, 900, used.changes(1))).isTrue();
    assertThat(used.addedSinceScan()).isEqualTo(100);
    used.scanned(true);
    assertThat(used.addedSinceScan()).isZero();
    assertThat(used.used()).isEqualTo(1200);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesWhatWouldPassTheCapacityAndLeavesNothingOfIt(boolean whole) throws Exception {
    LocalFileStore store = stores.open(capacity(10, NO_GC));
    BlockIds ids = BlockBytes.ids(2, 16);
    TransferResult result = whole ? dumpAll(store, ids) : stores.dumpShard(store, ids, 0);
    if (!whole) {
      stores.dumpShard(store, kept(result, ids), 1).requireOk();
    }
    int shards = whole ? 2 : 1;
    assertThat(result.okCount()).isEqualTo(10 * shards);
    for (int i = 0; i < 16 * shards; i++) {
      assertThat(result.outcome(i)).isIn(ShardOutcome.OK, ShardOutcome.REFUSED);
    }
    assertThat(result.cause())
        .hasMessageContaining("local_capacity_gb")
        .hasMessageContaining(" " + 10 * FILE + " ")
        .hasMessageContaining("its " + FILE);
    assertThat(stores.metrics.count("local_refused_blocks")).isEqualTo(6);
    assertThat(SmallSpace.blocks(directory)).hasSize(10);
    assertThat(SmallSpace.bytes(directory)).isEqualTo(10 * FILE);
    assertThat(stores.temps()).isEmpty();
    assertThat(store.lookup(ids).cardinality()).isEqualTo(10);
    assertThat(store.flush(TestStores.PATIENCE).failedCount()).isEqualTo(6);
    assertThat(stores.load(store, kept(result, ids)).ok()).isTrue();
  }

  @Test
  void aRefusedBlockStaysRefusedUntilItIsDumpedAgainFromItsFirstLayer() throws Exception {
    LocalFileStore store = stores.open(capacity(2, NO_GC));
    BlockIds full = BlockBytes.ids(20, 2);
    BlockIds late = BlockBytes.ids(21, 1);
    stores.dump(store, full).requireOk();
    assertThat(stores.dumpShard(store, late, 0).outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    Files.delete(SmallSpace.file(directory, full, 0));
    store.collector().makeRound();
    assertThat(stores.dumpShard(store, late, 1).outcome(0))
        .as("there is room now, but the first layer is missing")
        .isEqualTo(ShardOutcome.REFUSED);
    assertThat(stores.temps()).isEmpty();
    FlushResult flushed = store.flush(TestStores.PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(1);
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(stores.metrics.count("local_refused_blocks")).as("one block").isEqualTo(1);
    stores.dumpShard(store, late, 0).requireOk();
    stores.dumpShard(store, late, 1).requireOk();
    assertThat(store.flush(TestStores.PATIENCE).ok()).isTrue();
    assertThat(stores.load(store, late).ok()).isTrue();
  }

  private TransferResult dumpAll(LocalFileStore store, BlockIds ids) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(stores.layout, Placement.SCATTERED, ids).fill();
    return TestStores.ended(store.dump(memory.transfer()));
  }

  private static BlockIds kept(TransferResult result, BlockIds ids) {
    BlockIds failed = result.failedBlocks();
    int[] kept = IntStream.range(0, ids.size()).filter(i -> !contains(failed, ids, i)).toArray();
    return SmallSpace.some(ids, kept);
  }

  private static boolean contains(BlockIds list, BlockIds ids, int i) {
    for (int k = 0; k < list.size(); k++) {
      if (list.low(k) == ids.low(i) && list.high(k) == ids.high(i)) {
        return true;
      }
    }
    return false;
  }

  @Test
  void givesTheRoomOfAFailedDumpBack() throws Exception {
    LocalFileStore store = stores.open(files, capacity(2, NO_GC));
    for (FaultyFiles.Call call :
        List.of(
            FaultyFiles.Call.CREATE,
            FaultyFiles.Call.WRITE,
            FaultyFiles.Call.CLOSE,
            FaultyFiles.Call.RENAME)) {
      store.collector().makeRound();
      files.fail(call, files.count(call), Errno.EIO);
      TransferResult result = dumpAll(store, BlockBytes.ids(call.name().hashCode(), 1));
      assertThat(result.outcome(0)).as("%s", call).isEqualTo(ShardOutcome.FAILED);
      assertThat(stores.metrics.gauge("local_used_bytes")).as("%s", call).isZero();
    }
    stores.dump(store, BlockBytes.ids(9, 2)).requireOk();
    assertThat(dumpAll(store, BlockBytes.ids(10, 1)).outcome(0)).isEqualTo(ShardOutcome.REFUSED);
  }

  @Test
  void refusesWhatWouldLeaveLessThanTheFloorFree() throws Exception {
    // More than any disk has.
    LocalFileStore store = stores.open(Map.of("local_min_free_gb", 1e9));
    TransferResult result = dumpAll(store, BlockBytes.ids(3, 3));
    assertThat(result.outcome(5)).isEqualTo(ShardOutcome.REFUSED);
    assertThat(result.cause())
        .hasMessageContaining("local_min_free_gb")
        .hasMessageContaining("bytes are free in " + directory);
    assertThat(stores.metrics.count("local_refused_blocks")).isEqualTo(3);
    assertThat(SmallSpace.bytes(directory)).isZero();
  }

  @Test
  void asksForFreeSpaceAgainNearTheFloorAndAfterATime() {
    AtomicLong free = new AtomicLong(1000);
    AtomicLong clock = new AtomicLong();
    AtomicLong asked = new AtomicLong();
    FreeSpace space =
        new FreeSpace(
            () -> {
              asked.incrementAndGet();
              return free.get();
            },
            clock::get);
    space.keep(500);
    assertThat(space.has(1)).as("not asked yet").isFalse();
    assertThat(space.reserve(200)).isTrue();
    assertThat(space.reserve(200)).isTrue();
    assertThat(asked.get()).as("known").isEqualTo(1);
    assertThat(space.has(100)).isTrue();
    assertThat(space.has(101)).isFalse();
    assertThat(asked.get()).as("known").isEqualTo(1);
    assertThat(space.reserve(200)).as("400 of 1000 are reserved").isFalse();
    free.set(600);
    space.committed(200);
    space.committed(200);
    assertThat(space.reserve(100)).isTrue();
    assertThat(space.reserve(1)).isFalse();
    space.release(100);
    free.set(100_000);
    clock.addAndGet(1_000_000_000);
    assertThat(space.reserve(99_500)).isTrue();
    assertThat(space.known()).isEqualTo(500);
    assertThat(space.has(0)).isTrue();
    clock.addAndGet(60_000_000_000L);
    assertThat(space.has(0)).as("a minute ago").isFalse();
    space.keep(FreeSpace.OFF);
    assertThat(space.reserve(1)).isTrue();
    assertThat(space.has(0)).as("not asked").isFalse();
  }

  @Test
  void hasRoomForWhatNothingKnownWouldRefuse() throws Exception {
    LocalFileStore store =
        stores.open(
            files, capacity(10, Map.of("local_gc_enable", false, "store_health.enabled", true)));
    long block = LAYOUT.blockSize();
    assertThat(store.hasRoom(0)).as("the file system was not asked yet").isFalse();
    stores.dump(store, BlockBytes.ids(30, 4)).requireOk();
    assertThat(store.hasRoom(6 * block)).isTrue();
    assertThat(store.hasRoom(6 * block + 1)).isFalse();
    store.collector().awaitFirstRound();
    LocalFileStore other = stores.open(capacity(10, Map.of("local_gc_enable", false)));
    assertThat(store.hasRoom(0)).as("another store writes there, too").isFalse();
    other.close();
    assertThat(store.hasRoom(6 * block)).isTrue();
    files.fail(FaultyFiles.Call.WRITE, files.count(FaultyFiles.Call.WRITE), Errno.EIO);
    assertThat(dumpAll(store, BlockBytes.ids(31, 1)).outcome(0)).isEqualTo(ShardOutcome.FAILED);
    assertThat(store.hasRoom(0)).as("after a fault").isFalse();
  }
}
