package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.fault.FaultyClock;

final class Ds3fsStoreTest {

  private static final BlockLayout SMALL = BlockLayout.uniform(1000, 3000, 9000);
  private static final BlockLayout LARGE = BlockLayout.uniform(32 << 10, 64 << 10, 4 << 20);

  @TempDir private Path mount;
  @TempDir private Path otherMount;

  private SimulatedHf3fs hf3fs;
  private Map<String, Long> before;

  @BeforeEach
  void load() throws Exception {
    mount = mount.toRealPath();
    otherMount = otherMount.toRealPath();
    hf3fs = SimulatedHf3fs.load(mount, otherMount);
    before = hf3fs.kept();
  }

  @AfterEach
  void leavesNothingAndMisusesNothing() {
    hf3fs.requireNoMisuse();
    assertThat(hf3fs.kept()).isEqualTo(before);
  }

  @Test
  @Timeout(180)
  void aThreadThatRunsOutOfMemoryClosesTheStore() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 1);
    try (TestDs3fs stores = new TestDs3fs(mount.resolve("blocks"), SMALL)) {
      Store store = stores.open(Map.of("timeout_ms", 100), new FaultyClock("ucm-ds3fs-timeouts-0"));
      // Well or late, as the machine goes; the check of the timeouts follows.
      var _ = stores.dumpShard(store, ids, 0).ok();
      assertThatThrownBy(
              () -> {
                while (true) {
                  store.lookup(ids);
                  Thread.onSpinWait();
                }
              })
          .isInstanceOf(StoreClosedException.class);
    }
  }

  @Test
  void keepsBlocksAndFilesBeingWrittenWhereTheOriginalDoes() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 3);
    try (TestDs3fs stores = new TestDs3fs(mount.resolve("blocks"), SMALL)) {
      Store store = stores.open(Map.of());
      stores.dumpShard(store, ids, 2).requireOk();
      assertThat(stores.temps())
          .hasSize(3)
          .allMatch(name -> name.matches("[0-9a-f]{32}\\..*\\.tmp"));
      assertThat(store.lookup(ids).isEmpty()).isTrue();
      stores.dumpShard(store, ids, 0).requireOk();
      stores.dumpShard(store, ids, 1).requireOk();
      assertThat(store.flush(TestDs3fs.PATIENCE).ok()).isTrue();
      assertThat(stores.temps()).isEmpty();
      for (int i = 0; i < ids.size(); i++) {
        String name = ids.hex(i);
        assertThat(stores.directory.resolve(name.substring(0, 2)).resolve(name)).isRegularFile();
      }
      for (int shard = 0; shard < 3; shard++) {
        stores.loadShard(store, ids, shard).requireOk();
      }
    }
  }

  @Test
  void removesWhatADeadWriterLeft() throws Exception {
    Path directory = Files.createDirectories(mount.resolve("blocks"));
    BlockIds id = BlockBytes.ids(1, 1);
    // Of another boot, so that its list of folders is not trusted.
    String token = "dead-1-0";
    Path temps = Files.createDirectories(directory.resolve(".temp"));
    Path orphan = Files.createFile(temps.resolve(id.hex(0) + "." + token + "-0000000000.tmp"));
    Path foreign = Files.createFile(temps.resolve(id.hex(0)));
    Files.createDirectories(directory.resolve(".writers"));
    Files.writeString(directory.resolve(".writers").resolve(token), "");
    try (TestDs3fs stores = new TestDs3fs(directory, SMALL)) {
      stores.open(Map.of());
    }
    // The sweep ends with the store at the latest, whether it was done or stopped: do it to the
    // end.
    for (int i = 0; Files.exists(directory.resolve(".writers").resolve(token)); i++) {
      assertThat(i).as("stores opened without a sweep").isLessThan(1000);
      try (TestDs3fs stores = new TestDs3fs(directory, SMALL)) {
        stores.open(Map.of());
      }
    }
    assertThat(orphan).doesNotExist();
    assertThat(foreign).exists();
    assertThat(new Ds3fsStore().recognizes(directory)).isTrue();
    assertThat(new Ds3fsStore().recognizes(otherMount)).isFalse();
  }

  @Test
  void hasTheStepsOfABlockUnderWaySideBySide() throws Exception {
    BlockIds id = BlockBytes.ids(1, 1);
    try (TestDs3fs stores = new TestDs3fs(mount, LARGE)) {
      Store store = stores.open(Map.of("stream_number", 1));
      hf3fs.hold(true);
      Task dump = store.dump(stores.memory(id).fill().transfer());
      hf3fs.awaitUnderWay(8);
      hf3fs.hold(false);
      TestDs3fs.ended(dump).requireOk();
      hf3fs.hold(true);
      TransferMemory memory = stores.memory(id);
      Task load = store.load(memory.transfer());
      // The footer goes along.
      hf3fs.awaitUnderWay(9);
      hf3fs.hold(false);
      TestDs3fs.ended(load).requireOk();
      memory.check();
    }
  }

  @Test
  void movesCacheSlotsWithoutACopy() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 6);
    try (TestDs3fs stores = new TestDs3fs(mount, LARGE)) {
      Store ds3fs = stores.open(Map.of());
      Store cache = stores.openCache(ds3fs, 0.01);
      long iovs = hf3fs.count("iovs");
      assertThat(iovs).as("one for reading, one for writing, one lent").isEqualTo(3);
      // More than the pool holds, so that loads come from files.
      for (int i = 0; i < ids.size(); i++) {
        stores.dump(cache, ids.slice(i, i + 1)).requireOk();
        assertThat(cache.flush(TestDs3fs.PATIENCE).ok()).isTrue();
      }
      long bytes = ids.size() * LARGE.blockSize();
      assertThat(stores.metrics.count("ds3fs_direct_bytes")).isEqualTo(bytes);
      // Footers.
      assertThat(stores.metrics.count("ds3fs_copied_bytes")).isLessThan(ids.size() * 8192L);
      for (int i = 0; i < ids.size(); i++) {
        stores.load(cache, ids.slice(i, i + 1)).requireOk();
      }
      assertThat(stores.metrics.count("ds3fs_direct_bytes")).isGreaterThan(bytes + bytes / 2);
      assertThat(hf3fs.count("max_under_way")).isGreaterThanOrEqualTo(8);
    }
  }

  @Test
  void lendsMemoryOnceAndNotMoreThanThereIs() {
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      Store store = stores.open(Map.of());
      assertThat(offered(store, 1L << 50)).isNull();
      MemoryRegion region = offered(store, 1 << 20);
      assertThat(region.byteSize()).isEqualTo(1 << 20);
      assertThat(region.address() % 4096).isZero();
      assertThat(offered(store, 1 << 20)).isNull();
    }
  }

  @Test
  void usesSeveralMountsEachWithItsOwnMemory() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 32);
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      Store store =
          stores.open(Map.of("storage_backends", List.of(mount.toString(), otherMount.toString())));
      assertThat(hf3fs.count("iovs")).isEqualTo(4);
      assertThat(offered(store, 1 << 20)).isNull();
      stores.dump(store, ids).requireOk();
      assertThat(store.flush(TestDs3fs.PATIENCE).ok()).isTrue();
      assertThat(stores.load(store, ids).ok()).isTrue();
      assertThat(TestDs3fs.names(mount)).anyMatch(name -> name.matches("[0-9a-f]{2}"));
      assertThat(TestDs3fs.names(otherMount)).anyMatch(name -> name.matches("[0-9a-f]{2}"));
    }
  }

  @Test
  void endsATaskInTimeWhen3fsHangsAndServesNothingWrongAfterwards() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 2);
    try (TestDs3fs stores = new TestDs3fs(mount, LARGE)) {
      dumpByAnother(stores, ids);
      Store store =
          stores.open(Map.of("stream_number", 1, "timeout_ms", 200, "store_health.enabled", false));
      hf3fs.hold(true);
      TransferMemory memory = stores.memory(ids).scribble();
      TransferResult load = TestDs3fs.ended(store.load(memory.transfer()));
      assertThat(load.okCount()).isZero();
      assertThat(load.cause()).hasStackTraceContaining("timeout_ms");
      BlockIds more = BlockBytes.ids(2, 1);
      assertThat(stores.dump(store, more).okCount()).isZero();
      // Nothing of what was given up may reach the memory any more.
      memory.scribble();
      hf3fs.hold(false);
      hf3fs.awaitIdle();
      memory.checkScribbled();
      assertThat(store.flush(TestDs3fs.PATIENCE).failedCount()).isEqualTo(1);
      assertThat(store.lookup(more).isEmpty()).isTrue();
      assertThat(stores.temps()).isEmpty();
      until(() -> stores.load(store, ids).ok());
      until(() -> stores.dump(store, more).ok());
      until(() -> stores.load(store, more).ok());
      // By then the late answers were taken in.
      memory.checkScribbled();
    }
  }

  /** By a store that may take its time, whatever the one of the test may not. */
  private static void dumpByAnother(TestDs3fs stores, BlockIds ids) throws Exception {
    Store store = stores.open(Map.of());
    stores.dump(store, ids).requireOk();
    store.close();
  }

  /** Tries until something goes well, as its deadline is short for a busy machine. */
  private static void until(Callable<Boolean> attempt) throws Exception {
    long end = System.nanoTime() + TestDs3fs.PATIENCE.toNanos();
    while (!attempt.call()) {
      assertThat(System.nanoTime() - end).as("patience").isNegative();
    }
  }

  @Test
  void closesWithRequestsThatAreNeverAnswered() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 1);
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      dumpByAnother(stores, ids);
      // The task itself does not time out, however late its first thread comes to make a request.
      Store store = stores.open(Map.of("timeout_ms", 50), new ManualClock());
      hf3fs.hold(true);
      assertThat(stores.load(store, ids).okCount()).isZero();
    }
    // Its memory and its ring stay to the end of the process, as the answer may still come.
    hf3fs.hold(false);
    hf3fs.awaitIdle();
    assertThat(hf3fs.count("iovs")).isEqualTo(before.get("iovs") + 2);
    before = hf3fs.kept();
  }

  @Test
  void logsTasksAsTheOriginalDoes() throws Exception {
    Logger logger = (Logger) LoggerFactory.getLogger("ucm.store.file");
    ListAppender<ILoggingEvent> lines = new ListAppender<>();
    lines.start();
    logger.addAppender(lines);
    logger.setAdditive(false);
    logger.setLevel(Level.DEBUG);
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      Store store = stores.open(Map.of());
      stores.dump(store, BlockBytes.ids(1, 2)).requireOk();
      stores.load(store, BlockBytes.ids(1, 2)).requireOk();
    } finally {
      logger.detachAppender(lines);
      logger.setLevel(null);
      logger.setAdditive(true);
    }
    assertThat(lines.list.stream().map(ILoggingEvent::getFormattedMessage))
        .contains(
            "Ds3fs task(1,Cache2Backend,6,18000) dispatching.",
            "Ds3fs task(2,Backend2Cache,6,18000) dispatching.")
        .anyMatch(
            line ->
                line.matches(
                    "Ds3fs task\\(2,Backend2Cache,6,18000\\) finished, cost [0-9.]+ms\\."));
  }

  @Test
  void looksUpWithoutTheLibraryAsAScheduler() throws Exception {
    BlockIds ids = BlockBytes.ids(1, 2);
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      Store store = stores.open(Map.of());
      stores.dump(store, ids).requireOk();
      long rings = hf3fs.count("rings");
      Store scheduler =
          stores.open(Map.of("device_id", -1, "ds3fs_library_path", "/nowhere/lib.so"));
      assertThat(scheduler.lookup(ids).cardinality()).isEqualTo(2);
      assertThat(hf3fs.count("rings")).isEqualTo(rings);
      assertThat(offered(scheduler, 4096)).isNull();
    }
  }

  @Test
  void saysWhatIsMissing(@TempDir Path elsewhere) {
    refuses(
        Map.of("storage_backends", elsewhere.toString()),
        elsewhere.toString(),
        "is not on 3FS",
        "FUSE client");
    refuses(
        Map.of("ds3fs_library_path", elsewhere.toString()),
        "ds3fs_library_path is " + elsewhere,
        "libhf3fs_api_shared.so");
    refuses(
        Map.of("iov_read_size", 1L << 40),
        "/dev/shm",
        "needs " + ((1L << 40) + (16 << 20)) + " bytes",
        "iov_read_size");
    refuses(
        Map.of("hf3fs_mount_point", otherMount.toString()),
        "hf3fs_mount_point is " + otherMount,
        "mounted at " + mount);
  }

  private void refuses(Map<String, Object> settings, String... words) {
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      assertThatThrownBy(() -> stores.open(settings))
          .isInstanceOf(StoreException.class)
          .hasMessageContainingAll(words);
    }
  }

  @Test
  void goesOnAfterItWasOpenedASecondTime() throws Exception {
    try (TestDs3fs stores = new TestDs3fs(mount, SMALL)) {
      Store store = stores.open(Map.of());
      assertThatThrownBy(() -> store.open(StoreContext.of(null)))
          .isInstanceOf(IllegalStateException.class);
      stores.dump(store, BlockBytes.ids(1, 1)).requireOk();
      stores.load(store, BlockBytes.ids(1, 1)).requireOk();
    }
  }

  @Test
  void givesEverythingBackWhenOpeningFails() {
    hf3fs.fail("iovcreate", 2, 1, 12);
    refuses(Map.of(), "hf3fs_iovcreate", "ENOMEM", "FUSE client");
  }

  @Test
  void writesNothingThroughALinkInPlaceOfItsFolderForTemporaryFiles() throws Exception {
    Path outside = Files.createDirectory(mount.resolve("outside"));
    Path directory = Files.createDirectory(mount.resolve("linked"));
    try (TestDs3fs stores = new TestDs3fs(directory, SMALL)) {
      Store store = stores.open(Map.of("store_health.enabled", false));
      Files.deleteIfExists(directory.resolve(Ds3fsFiles.TEMP_FOLDER));
      Files.createSymbolicLink(directory.resolve(Ds3fsFiles.TEMP_FOLDER), outside);
      BlockIds ids = BlockBytes.ids(77, 2);
      assertThat(stores.dump(store, ids).ok()).isFalse();
      assertThat(store.lookup(ids).cardinality()).isZero();
    }
    assertThat(outside).isEmptyDirectory();
  }

  private static MemoryRegion offered(Store store, long byteSize) {
    return ((MemoryProvider) store).offerMemory(byteSize);
  }
}
