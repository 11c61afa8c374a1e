package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FailingMount;
import ucm.store.file.fixture.FaultWorkload;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;

/**
 * Two directories, of which the first is on a real file system that fails and stalls: real calls, real
 * time, and without help for the store. Nothing here depends on how fast anything is: what must not
 * hang is waited for while the file system stalls, and that ends only when the wait is over.
 */
@Timeout(value = 180, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class FailingMountTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 16_384);
  private static final int FAILING = 0;

  // Most of the time is spent on waiting for deadlines; -Ducm.failing=all has the patience for each
  // call.
  private static final boolean ALL = "all".equals(System.getProperty("ucm.failing"));

  @TempDir private static Path programs;
  private static Path program;

  @TempDir private Path parent;

  private final Map<String, Object> settings = new HashMap<>();
  private FailingMount mount;
  private TestStores stores;
  private BlockPaths paths;
  private BlockIds failing;
  private BlockIds healthy;
  private BlockIds freshFailing;
  private BlockIds freshWell;

  /** The empty name stands for all calls at once. */
  static List<String> callsThatAProbeMakes() {
    return ALL
        ? List.of("lookup", "create", "read", "write", "sync", "close", "")
        : List.of("lookup", "read", "write", "");
  }

  static List<String> callsThatNoProbeMakes() {
    return ALL ? List.of("open", "rename", "mkdir", "unlink", "list") : List.of("rename", "mkdir");
  }

  static List<String> callsThatACloseMayMeet() {
    return ALL
        ? List.of(
            "lookup", "open", "create", "read", "write", "sync", "close", "rename", "mkdir", "list",
            "unlink", "")
        : List.of("read", "unlink", "");
  }

  static List<Integer> errorsOfAFullDirectory() {
    return ALL ? List.of(Errno.ENOSPC, Errno.EDQUOT, Errno.EROFS) : List.of(Errno.ENOSPC);
  }

  static List<Integer> errorsOfAFailingDirectory() {
    return ALL ? List.of(Errno.EIO, Errno.ESTALE) : List.of(Errno.EIO);
  }

  @BeforeAll
  static void compiles() throws Exception {
    program = FailingMount.compile(programs);
  }

  @BeforeEach
  void mountsBoth() throws Exception {
    mount = FailingMount.in(parent, program);
    Path other = Files.createDirectory(parent.resolve("healthy"));
    List<String> directories = List.of(mount.directory.toString(), other.toString());
    paths = new BlockPaths("Local", directories, 3);
    stores = new TestStores(mount.directory, LAYOUT);
    failing = in(FAILING, 10, 6);
    healthy = in(1 - FAILING, 11, 6);
    freshFailing = in(FAILING, 12, 6);
    freshWell = in(1 - FAILING, 13, 6);
    settings.put("storage_backends", directories);
    // Well above what it takes to open the breaker, also on a machine with much to do.
    settings.put("timeout_ms", 6000);
    settings.put("local_data_trans_concurrency", 2);
    settings.put("store_health.health_check_timeout_s", 1);
    settings.put("store_health.health_check_interval_s", 1);
  }

  @AfterEach
  void leavesNothingOpen() throws Exception {
    // Nothing is mounted when the test was skipped.
    if (mount != null) {
      mount.heal();
      stores.close();
      Waiting.until("all threads have ended", () -> Waiting.threads("ucm-local-").isEmpty());
      assertThat(stores.openFiles()).isEmpty();
      mount.close();
    }
  }

  private BlockIds in(int directory, long seed, int count) {
    return TestStores.idsIn(paths, directory, BlockBytes.ids(seed, 8 * count + 16)).slice(0, count);
  }

  private boolean isDown() {
    return stores.store().volumes().get(FAILING).refusal() != null;
  }

  @Test
  void isOpenedByFailuresOfLoadsAndRefusesAtOnce() throws Exception {
    settings.put("store_health.health_check_interval_s", 86_400);
    stores.dumpByAnother(settings, failing, healthy);
    LocalFileStore store = stores.open(settings);
    store.awaitScan();
    store.awaitSweep();
    mount.fail(Errno.EIO);
    for (int i = 0; i < 2; i++) {
      assertThat(stores.load(store, failing.slice(i, i + 1)).outcome(0))
          .isEqualTo(ShardOutcome.FAILED);
    }
    assertThat(isDown()).isTrue();
    assertThat(stores.metrics.gauge("local_health_state_0")).isEqualTo(2);
    mount.stall();
    TransferResult refused = stores.load(store, failing);
    assertThat(refused.outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    assertThat(refused.cause()).hasMessageContaining("EIO");
    assertThat(store.lookupPrefix(failing)).isEqualTo(-1);
    assertThat(store.durable(failing).isEmpty()).isTrue();
    assertThat(stores.load(store, healthy).ok()).isTrue();
    stores.dump(store, in(1 - FAILING, 3, 4)).requireOk();
    mount.heal();
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(isDown()).isFalse();
    assertThat(stores.load(store, failing).ok()).isTrue();
  }

  @ParameterizedTest
  @MethodSource("errorsOfAFailingDirectory")
  void isOpenedByProbesWhenIdleAndClosedByThem(int errno) throws Exception {
    settings.put("store_health.health_check_timeout_s", 5);
    LocalFileStore store = stores.open(settings);
    stores.dump(store, failing).requireOk();
    for (int round = 1; round <= 2; round++) {
      mount.fail(errno);
      Waiting.until("probes open the breaker", this::isDown);
      assertThat(store.lookup(failing).isEmpty()).isTrue();
      mount.heal();
      Waiting.until("a probe closes it", () -> !isDown());
      assertThat(stores.metrics.count("local_health_trips")).isEqualTo(round);
      stores.load(store, failing).requireOk();
    }
    assertThat(stores.metrics.count("local_health_late_operations")).isZero();
  }

  @ParameterizedTest
  @MethodSource("errorsOfAFullDirectory")
  void goesOnReadingWhereNothingCanBeWritten(int errno) throws Exception {
    settings.put("store_health.health_check_timeout_s", 5);
    LocalFileStore store = stores.open(settings);
    BlockIds fresh = in(FAILING, 6, 4);
    stores.dump(store, failing).requireOk();
    mount.fail(errno, "create", "write", "mkdir");
    double before = stores.metrics.count("local_health_probes");
    assertThat(FaultWorkload.dump(store, LAYOUT, fresh).result().okCount()).isZero();
    Waiting.until("probes", () -> stores.metrics.count("local_health_probes") >= before + 2);
    assertThat(isDown()).isFalse();
    assertThat(stores.load(store, failing).ok()).isTrue();
    assertThat(store.lookup(fresh).isEmpty()).isTrue();
    mount.heal();
    stores.dump(store, fresh).requireOk();
    assertThat(stores.load(store, fresh).ok()).isTrue();
  }

  @Test
  void movesEverythingThoughReadsAndWritesFallShort() throws Exception {
    settings.put("store_health.health_check_timeout_s", 5);
    LocalFileStore store = stores.open(settings);
    BlockIds whole = in(FAILING, 7, 6);
    BlockIds layered = in(FAILING, 8, 6);
    mount.fallShort();
    stores.dump(store, whole).requireOk();
    for (int shard = LAYOUT.shardCount() - 1; shard >= 0; shard--) {
      stores.dumpShard(store, layered, shard).requireOk();
    }
    assertThat(stores.load(store, whole).ok()).isTrue();
    mount.heal();
    assertThat(stores.load(store, whole).ok()).isTrue();
    assertThat(stores.load(store, layered).ok()).isTrue();
  }

  /** Calls that the probe makes as well, so that the breaker stays open while they stall. */
  @ParameterizedTest
  @MethodSource("callsThatAProbeMakes")
  void leavesADirectoryAloneWhileItStalls(String call) throws Exception {
    LocalFileStore store = openAndFill();
    stall(call);
    FaultWorkload work = askForAll(store);
    Waiting.until("the breaker opens", this::isDown);
    work.awaitAnswers();
    Waiting.until("counted", () -> stores.metrics.count("local_health_trips") == 1);
    assertThat(store.lookup(failing).isEmpty()).isTrue();
    assertThat(store.lookupPrefix(failing)).isEqualTo(-1);
    assertThat(store.durable(failing).isEmpty()).isTrue();
    assertThat(stores.load(store, failing).outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    assertThat(FaultWorkload.dump(store, LAYOUT, in(FAILING, 16, 2)).result().outcome(0))
        .isEqualTo(ShardOutcome.REFUSED);
    work.awaitOk(healthy);
    work.awaitOk(freshWell);
    assertThat(stores.load(store, freshWell).ok()).isTrue();
    mount.heal();
    requireRecovery(store, work);
    assertThat(stores.metrics.count("local_health_trips")).isEqualTo(1);
  }

  /** Calls that the probe does not make: it may find the directory well in between. */
  @ParameterizedTest
  @MethodSource("callsThatNoProbeMakes")
  void goesOnElsewhereWhileCallsStallThatNoProbeMakes(String call) throws Exception {
    LocalFileStore store = openAndFill();
    stall(call);
    FaultWorkload work = askForAll(store);
    work.awaitAnswers();
    work.awaitOk(healthy);
    work.awaitOk(freshWell);
    mount.heal();
    requireRecovery(store, work);
  }

  /** Nothing else opens the breaker: no probe is made, nothing is loaded, no id is in the index. */
  @Test
  void answersCallersOfLookupsThatStallWhenTheBreakerOpens() throws Exception {
    settings.put("timeout_ms", 60_000);
    settings.put("store_health.health_check_interval_s", 86_400);
    LocalFileStore store = openWithoutIndex();
    BlockIds all = healthyAndFailing();
    mount.stall("lookup");
    AtomicInteger last = new AtomicInteger();
    Thread prefix = Thread.ofPlatform().daemon().start(() -> last.set(store.lookupPrefix(failing)));
    AtomicReference<BitSet> found = new AtomicReference<>();
    Thread mixed = Thread.ofPlatform().daemon().start(() -> found.set(store.lookup(all)));
    mount.awaitStalled("lookup", 2);
    assertThat(store.lookup(healthy).cardinality()).isEqualTo(6);
    assertThat(mixed.join(TestStores.PATIENCE)).as("%s", Waiting.stacks()).isTrue();
    assertThat(prefix.join(TestStores.PATIENCE)).as("%s", Waiting.stacks()).isTrue();
    assertThat(isDown()).isTrue();
    BitSet ofTheOther = new BitSet();
    ofTheOther.set(0, 6);
    assertThat(found.get()).isEqualTo(ofTheOther);
    assertThat(last.get()).isEqualTo(-1);
    assertThat(stores.metrics.count("local_lookup_expiries")).as("none used its time up").isZero();
    assertThat(stores.metrics.count("local_health_late_operations")).isGreaterThanOrEqualTo(2);
    mount.heal();
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    assertThat(store.lookup(all).cardinality()).isEqualTo(12);
    assertThat(store.lookupPrefix(failing)).isEqualTo(5);
  }

  @Test
  void answersCallersOfLookupsThatStallInTimeWithoutABreaker() throws Exception {
    settings.put("timeout_ms", 500);
    settings.put("store_health.enabled", false);
    LocalFileStore store = openWithoutIndex();
    BlockIds all = healthyAndFailing();
    long before = stores.metrics.count("local_lookup_expiries");
    mount.stall("lookup");
    BitSet found = store.lookup(all);
    assertThat(found.nextSetBit(6)).as("nothing of the directory that stalls").isEqualTo(-1);
    assertThat(store.lookupPrefix(failing)).isEqualTo(-1);
    assertThat(stores.metrics.count("local_lookup_expiries")).isEqualTo(before + 2);
    mount.heal();
    Waiting.until("prefixes are found", () -> store.lookupPrefix(failing) == 5);
    Waiting.until("all are found", () -> store.lookup(all).cardinality() == 12);
  }

  private BlockIds healthyAndFailing() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    bytes.writeBytes(healthy.toBytes());
    bytes.writeBytes(failing.toBytes());
    return BlockIds.ofBytes(bytes.toByteArray());
  }

  /** Its blocks are there, and every look-up asks the file system. */
  private LocalFileStore openWithoutIndex() throws Exception {
    settings.put("local_index_max_blocks", 0);
    stores.dumpByAnother(settings, failing, healthy);
    LocalFileStore store = stores.open(settings);
    Waiting.until("look-ups are answered in time", () -> store.lookup(failing).cardinality() == 6);
    return store;
  }

  private LocalFileStore openAndFill() throws Exception {
    settings.put("durability", "full");
    stores.dumpByAnother(settings, failing, healthy);
    LocalFileStore store = stores.open(settings);
    store.awaitScan();
    store.awaitSweep();
    BlockIds begun = in(FAILING, 14, 2);
    Waiting.until("blocks are begun", () -> stores.dumpShard(store, begun, 0).ok());
    // So fast that look-ups begin with few threads.
    store.lookup(in(FAILING, 17, 500));
    return store;
  }

  private void stall(String call) throws Exception {
    mount.stall(call.isEmpty() ? new String[0] : new String[] {call});
  }

  private FaultWorkload askForAll(LocalFileStore store) {
    FaultWorkload work = new FaultWorkload(store, LAYOUT);
    work.loadEach(failing);
    work.dumpEach(freshFailing);
    work.loadEach(healthy);
    work.dumpEach(freshWell);
    work.dumpShards(in(FAILING, 14, 2), 1);
    work.dumpShards(in(FAILING, 18, 2), 0);
    work.askEverything(failing, in(FAILING, 15, 40));
    return work;
  }

  private void requireRecovery(LocalFileStore store, FaultWorkload work) throws Exception {
    work.awaitAll();
    Waiting.until("the breaker closes", () -> !isDown());
    work.requireWhatWasPromised(stores);
    assertThat(stores.load(store, failing).ok()).isTrue();
    stores.dump(store, freshFailing).requireOk();
    assertThat(stores.load(store, freshFailing).ok()).isTrue();
    work.requireMemoryUntouched();
    requireNoTraceAfterClose(store);
  }

  @ParameterizedTest
  @MethodSource("callsThatACloseMayMeet")
  void closesWhileACallStalls(String call) throws Exception {
    settings.put("timeout_ms", 1500);
    LocalFileStore store = openAndFill();
    stall(call);
    FaultWorkload work = askForAll(store);
    Thread closing = Thread.ofPlatform().name("test-close").start(store::close);
    assertThat(closing.join(TestStores.PATIENCE))
        .as("closed though %s stalls; meanwhile%n%s", call, Waiting.stacks())
        .isTrue();
    mount.heal();
    work.awaitAll();
    Waiting.until("all threads end", () -> Waiting.threads("ucm-local-").isEmpty());
    work.requireMemoryUntouched();
    settings.put("timeout_ms", 60_000);
    LocalFileStore next = stores.open(settings);
    next.awaitSweep();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.load(next, failing).ok()).isTrue();
    stores.load(next, freshFailing);
    stores.dump(next, freshFailing).requireOk();
    assertThat(stores.load(next, freshFailing).ok()).isTrue();
    requireNoTraceAfterClose(next);
  }

  /** What could not be removed while the directory was left alone, the next start removes. */
  private void requireNoTraceAfterClose(LocalFileStore store) throws Exception {
    store.close();
    assertThat(stores.openFiles()).isEmpty();
    LocalFileStore next = stores.open(settings);
    next.awaitSweep();
    next.close();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.in(".writers")).isEmpty();
    assertThat(stores.openFiles()).isEmpty();
  }
}
