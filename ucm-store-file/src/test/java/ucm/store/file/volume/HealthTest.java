package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Two directories, of which the first falls ill. No probe is made but by the tests. */
final class HealthTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  // So long that only the tests find late operations.
  private static final Duration CHECK_TIMEOUT = Duration.ofHours(1);
  private static final Duration TASK_TIMEOUT = Duration.ofHours(10);
  private static final int FAILING = 0;
  private static final int WELL = 1;

  private final Map<String, Object> settings = new HashMap<>();
  private Path failing;
  private Path healthy;
  private BlockPaths paths;
  private BlockIds failingIds;
  private BlockIds healthyIds;

  HealthTest() {
    super(LAYOUT);
  }

  @BeforeEach
  void setUp() throws Exception {
    failing = Files.createDirectory(directory.resolve("failing"));
    healthy = Files.createDirectory(directory.resolve("healthy"));
    List<String> directories = List.of(failing.toString(), healthy.toString());
    paths = new BlockPaths("Local", directories, 3);
    settings.put("storage_backends", directories);
    settings.put("timeout_ms", (int) TASK_TIMEOUT.toMillis());
    settings.put("store_health.health_check_interval_s", 86_400);
    settings.put("store_health.health_check_timeout_s", (int) CHECK_TIMEOUT.toSeconds());
    failingIds = idsIn(FAILING, BlockBytes.ids(80, 64)).slice(0, 8);
    healthyIds = idsIn(WELL, BlockBytes.ids(80, 64)).slice(0, 8);
  }

  /** A store that has done what it does when it opens. */
  private LocalFileStore open() throws InterruptedException {
    LocalFileStore store = stores.open(files, clock, settings);
    store.awaitScan();
    store.awaitSweep();
    return store;
  }

  @Test
  void leavesOnlyTheFailingDirectoryAloneAndBlocksNowhere() throws Exception {
    LocalFileStore store = open();
    stores.dump(store, failingIds).requireOk();
    stores.dump(store, healthyIds).requireOk();
    files.fail(failing, Errno.EIO);
    assertThat(outcome(stores.load(store, failingIds.slice(0, 1)))).isEqualTo(ShardOutcome.FAILED);
    assertThat(stores.metrics.gauge("local_health_state")).isZero();
    assertThat(outcome(stores.load(store, failingIds.slice(1, 2)))).isEqualTo(ShardOutcome.FAILED);
    assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
    assertThat(stores.metrics.gauge("local_health_state")).isEqualTo(2);
    assertThat(stores.metrics.gauge("local_health_state_0")).isEqualTo(2);
    assertThat(stores.metrics.gauge("local_health_state_1")).isZero();

    // Whatever touched the directory now would never come back.
    try (FaultyFiles.Hang _ = files.hang(failing, call -> true)) {
      assertThat(store.lookup(failingIds).isEmpty()).isTrue();
      assertThat(store.lookupPrefix(failingIds)).isEqualTo(-1);
      assertThat(store.durable(failingIds).isEmpty()).isTrue();
      assertThat(stores.metrics.count("local_health_lookup_misses")).isEqualTo(17);
      assertThat(store.lookupKnown(failingIds).isEmpty()).isTrue();
      TransferResult load = stores.load(store, failingIds);
      assertThat(load.okCount()).isZero();
      assertThat(outcome(load)).isEqualTo(ShardOutcome.REFUSED);
      assertThat(load.cause()).hasMessageContaining(failing.toString()).hasMessageContaining("EIO");
      assertThat(stores.metrics.count("local_health_refused_load_shards")).isEqualTo(32);
      TransferResult dump = dump(store, failingIds);
      assertThat(outcome(dump)).isEqualTo(ShardOutcome.REFUSED);
      assertThat(stores.metrics.count("local_health_dropped_dump_shards")).isEqualTo(32);
      FlushResult flushed = store.flush(Duration.ZERO);
      assertThat(flushed.failedCount()).isEqualTo(8);
      assertThat(flushed.pendingBlocks()).isZero();
      assertThat(stores.metrics.gauge("local_open_shards")).isZero();

      assertThat(store.lookupPrefix(healthyIds)).isEqualTo(7);
      assertThat(stores.load(store, healthyIds).ok()).isTrue();
      BlockIds fresh = BlockBytes.ids(81, 64);
      TransferResult mixed = dump(store, fresh);
      for (int i = 0; i < fresh.size(); i++) {
        boolean isFailing = paths.directoryOf(fresh.high(i), fresh.low(i)) == FAILING;
        assertThat(mixed.outcome(4 * i))
            .isEqualTo(isFailing ? ShardOutcome.REFUSED : ShardOutcome.OK);
      }
    }
  }

  @Test
  void usesTheDirectoryAgainWhenAProbeGoesWell() throws Exception {
    LocalFileStore store = open();
    stores.dump(store, failingIds).requireOk();
    trip(store);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(stores.metrics.count("local_health_probe_failures")).isEqualTo(1);
    assertThat(store.lookupPrefix(failingIds)).as("the probe failed as well").isEqualTo(-1);
    try (FaultyFiles.Hang hang = files.hang(failing, "syncData"::equals)) {
      Thread prober = Thread.ofPlatform().start(() -> store.volumes().get(FAILING).probe());
      hang.awaitHeld(1);
      assertThat(stores.metrics.gauge("local_health_state")).as("half-open").isEqualTo(1);
      assertThat(outcome(stores.load(store, failingIds))).isEqualTo(ShardOutcome.REFUSED);
      assertThat(store.volumes().get(FAILING).probe()).as("no second probe beside it").isFalse();
      hang.end();
      prober.join();
    }
    assertThat(stores.metrics.gauge("local_health_state")).isZero();
    assertThat(stores.metrics.count("local_health_probes")).isEqualTo(2);
    assertThat(store.lookupPrefix(failingIds)).isEqualTo(7);
    assertThat(stores.load(store, failingIds).ok()).isTrue();
    store.close();
    assertThat(failing.resolve(".writers")).isEmptyDirectory();
    assertThat(stores.openFiles()).isEmpty();
  }

  @Test
  void keepsWorkersForTheOtherDirectoryWhenOneHangs() throws Exception {
    settings.put("local_data_trans_concurrency", 2);
    LocalFileStore store = open();
    stores.dump(store, failingIds).requireOk();
    stores.dump(store, healthyIds).requireOk();
    try (FaultyFiles.Hang hang = files.hang(failing, "readAt"::equals)) {
      List<Task> held = List.of(load(store, failingIds, 0), load(store, failingIds, 1));
      hang.awaitHeld(2);
      Task waiting = load(store, failingIds, 2);
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, healthyIds);
      Task other = store.load(memory.transfer());
      store.volumes().findLateOperations();
      clock.advance(CHECK_TIMEOUT.minusNanos(1));
      store.volumes().findLateOperations();
      assertThat(stores.metrics.count("local_health_trips")).isZero();
      assertThat(waiting.check() || other.check()).as("all workers are held").isFalse();
      clock.advance(Duration.ofNanos(1));
      store.volumes().findLateOperations();
      assertThat(stores.metrics.count("local_health_late_operations")).isEqualTo(2);
      assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
      assertThat(waiting.check()).as("ended at once").isTrue();
      assertThat(outcome(waiting.result())).isEqualTo(ShardOutcome.REFUSED);
      assertThat(TestStores.ended(other).ok()).isTrue();
      memory.check();
      assertThat(store.lookup(failingIds).isEmpty()).isTrue();
      assertThat(held).noneMatch(Task::check);
      hang.end();
      for (Task task : held) {
        assertThat(TestStores.ended(task).ok()).as("late, and right").isTrue();
      }
    }
    files.heal(failing);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(stores.load(store, failingIds).ok()).isTrue();
  }

  @Test
  void keepsThreadsForLookupsOfTheOtherDirectoryWhenOneHangs() throws Exception {
    settings.put("store_health.failure_threshold", 1);
    settings.put("local_index_max_blocks", 0);
    settings.put("local_lookup_concurrency", 1);
    stores.dumpByAnother(settings, failingIds, healthyIds);
    LocalFileStore store = open();
    try (FaultyFiles.Hang hang = files.hang(failing, "size"::equals)) {
      Thread asking = Thread.ofPlatform().start(() -> store.lookup(failingIds));
      hang.awaitHeld(1);
      AtomicInteger last = new AtomicInteger();
      Thread other = Thread.ofPlatform().start(() -> last.set(store.lookupPrefix(healthyIds)));
      store.volumes().findLateOperations();
      clock.advance(CHECK_TIMEOUT);
      store.volumes().findLateOperations();
      assertThat(asking.join(TestStores.PATIENCE)).as("answered while it hangs").isTrue();
      assertThat(other.join(TestStores.PATIENCE)).as("by another thread").isTrue();
      assertThat(last.get()).isEqualTo(7);
      assertThat(store.lookupPrefix(failingIds)).as("does not hang").isEqualTo(-1);
      assertThat(stores.metrics.count("local_lookup_expiries")).isZero();
      assertThat(store.lookup(healthyIds).cardinality()).isEqualTo(8);
      assertThat(Waiting.threads("ucm-local-lookup-")).hasSize(2);
      hang.end();
    }
    files.heal(failing);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(store.lookup(failingIds).cardinality()).isEqualTo(8);
  }

  @Test
  void closesInTimeWhileADirectoryHangs() throws Exception {
    settings.put("timeout_ms", 100);
    try (FaultyFiles.Hang hang = files.hang(failing, "openUnnoticed"::equals)) {
      // By its clock, no task is ever due; it closes by the real time.
      LocalFileStore store = open();
      stores.dump(store, failingIds).requireOk();
      Task held = load(store, failingIds, 0);
      hang.awaitHeld(1);
      try (FaultyFiles.Hang probes = files.hang(failing, call -> true)) {
        Thread prober = Thread.ofPlatform().start(() -> store.volumes().get(FAILING).probe());
        probes.awaitHeld(1);
        Thread closing = Thread.ofPlatform().start(store::close);
        assertThat(closing.join(TestStores.PATIENCE)).as("closed").isTrue();
        assertThat(held.check()).isFalse();
        probes.end();
        prober.join();
      }
      hang.end();
      TestStores.ended(held);
    }
  }

  @Test
  void leavesUnfinishedBlocksOfADirectoryThatHangsForLater() throws Exception {
    LocalFileStore store = open();
    stores.dumpShard(store, failingIds.slice(0, 1), 0).requireOk();
    trip(store);
    try (FaultyFiles.Hang _ = files.hang(failing, call -> true)) {
      clock.advance(TASK_TIMEOUT);
      FlushResult flushed = store.flush(Duration.ZERO);
      assertThat(flushed.pendingBlocks()).as("not removed yet").isEqualTo(1);
    }
    files.heal(failing);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(store.flush(Duration.ZERO).pendingBlocks()).isZero();
    Waiting.until("the file is removed", () -> stores.temps().isEmpty());
  }

  @ParameterizedTest
  @ValueSource(ints = {Errno.ENOSPC, Errno.EDQUOT, Errno.EROFS, Errno.EACCES})
  void goesOnReadingWhereNothingCanBeWritten(int errno) throws Exception {
    LocalFileStore store = open();
    stores.dump(store, failingIds).requireOk();
    files.fail(failing, errno, call -> List.of("writeAt", "create", "makeFolder").contains(call));
    BlockIds fresh = idsIn(FAILING, BlockBytes.ids(82, 64));
    assertThat(outcome(dump(store, fresh))).isEqualTo(ShardOutcome.FAILED);
    for (int i = 0; i < 3; i++) {
      assertThat(store.volumes().get(FAILING).probe()).isTrue();
    }
    assertThat(stores.metrics.count("local_health_probe_failures")).isZero();
    assertThat(stores.metrics.count("local_health_trips")).isZero();
    assertThat(store.lookupPrefix(failingIds)).isEqualTo(7);
    assertThat(stores.load(store, failingIds).ok()).isTrue();
    assertThat(store.lookup(fresh).isEmpty()).isTrue();
  }

  private BlockIds idsIn(int directory, BlockIds all) {
    return TestStores.idsIn(paths, directory, all);
  }

  @Test
  void probesAnIdleDirectoryAndCountsDamage() throws Exception {
    LocalFileStore store = open();
    files.fail(failing, Errno.EIO, "readAt"::equals);
    store.volumes().get(FAILING).probe();
    store.volumes().get(WELL).probe();
    assertThat(stores.metrics.gauge("local_health_state")).isZero();
    store.volumes().get(FAILING).probe();
    assertThat(stores.metrics.gauge("local_health_state_0")).isEqualTo(2);
    assertThat(stores.metrics.gauge("local_health_state_1")).isZero();
    assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
    assertThat(stores.metrics.count("local_health_probes")).isEqualTo(3);
    assertThat(failing.resolve(".writers")).as("a failed probe leaves nothing").isEmptyDirectory();
  }

  @Test
  void onlyReadsTheDirectoryWithTheSchedulerRole() throws Exception {
    settings.put("device_id", -1);
    settings.put("local_lookup_concurrency", 1);
    LocalFileStore store = open();
    // It would meet the fault as well, and be one of the two failures.
    store.awaitScan();
    files.fail(failing, Errno.EIO);
    assertThat(store.lookup(failingIds).isEmpty()).isTrue();
    assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
    assertThat(stores.metrics.count("local_lookup_errors")).as("no more are made").isEqualTo(2);
    files.heal(failing);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(stores.metrics.gauge("local_health_state")).isZero();
    assertThat(failing).isEmptyDirectory();
  }

  @Test
  void neverLeavesADirectoryAloneWhenDisabled() throws Exception {
    settings.put("store_health.enabled", false);
    LocalFileStore store = open();
    stores.dump(store, failingIds).requireOk();
    files.fail(failing, Errno.EIO);
    assertThat(outcome(stores.load(store, failingIds))).isEqualTo(ShardOutcome.FAILED);
    files.heal(failing);
    assertThat(stores.load(store, failingIds).ok()).isTrue();
    assertThat(stores.metrics.names()).doesNotContain("local_health_state");
  }

  @Test
  void removesTheProbeOfADeadProcess() throws Exception {
    Path left = Files.createDirectory(failing.resolve(".writers")).resolve("probe-1-ff");
    Files.write(left, new byte[4096]);
    LocalFileStore store = open();
    store.awaitSweep();
    assertThat(left).doesNotExist();
  }

  private void trip(LocalFileStore store) throws Exception {
    files.fail(failing, Errno.EIO);
    stores.load(store, failingIds.slice(0, 2));
    assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
  }

  private static Task load(Store store, BlockIds ids, int i) {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids.slice(i, i + 1));
    return store.load(memory.transfer());
  }

  private static TransferResult dump(Store store, BlockIds ids) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids).fill();
    return TestStores.ended(store.dump(memory.transfer()));
  }

  private static ShardOutcome outcome(TransferResult result) {
    return result.outcome(0);
  }
}
