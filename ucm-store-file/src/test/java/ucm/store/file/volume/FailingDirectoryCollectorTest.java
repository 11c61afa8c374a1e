package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;

/** Work in the background on two directories, of which one is ill. */
final class FailingDirectoryCollectorTest extends InOneDirectory {

  private static final Duration CHECK_TIMEOUT = Duration.ofSeconds(3);
  private static final int BLOCKS = 48;
  private static final int FAILING = 0;

  private final BlockIds ids = BlockBytes.ids(90, BLOCKS);
  private Path failing;
  private Path healthy;

  FailingDirectoryCollectorTest() {
    super(LAYOUT);
  }

  @BeforeEach
  void makeDirectories() throws Exception {
    failing = Files.createDirectory(directory.resolve("failing"));
    healthy = Files.createDirectory(directory.resolve("healthy"));
  }

  private Map<String, Object> settings(int blocks) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("storage_backends", List.of(failing.toString(), healthy.toString()));
    settings.put("store_health.enabled", true);
    settings.put("store_health.health_check_interval_s", 86_400);
    settings.put("local_gc_trigger_threshold_ratio", 0.25);
    settings.put("local_gc_recycle_percent", 0);
    return SmallSpace.capacity(blocks, settings);
  }

  /** Blocks in both directories, written by another store; those of the failing one are the coldest. */
  private void fill() throws Exception {
    Map<String, Object> settings = settings(100 * BLOCKS);
    settings.put("local_capacity_gb", 0);
    settings.remove("local_gc_trigger_threshold_ratio");
    try (TestStores others = new TestStores(directory, LAYOUT)) {
      others.dump(others.open(settings), ids).requireOk();
    }
    for (Path block : SmallSpace.blocks(failing)) {
      SmallSpace.usedAt(block, 1);
    }
    assertThat(blocks(failing)).isBetween(9, BLOCKS - 9);
  }

  /** A store that has done what it does when it opens. */
  private LocalFileStore opened(Map<String, Object> settings) throws Exception {
    LocalFileStore store = stores.open(files, clock, settings);
    store.awaitScan();
    store.awaitSweep();
    store.collector().awaitFirstRound();
    return store;
  }

  private static int blocks(Path directory) throws Exception {
    return SmallSpace.blocks(directory).size();
  }

  private void makeRoundsUntil(LocalFileStore store, Callable<Boolean> done) throws Exception {
    Waiting.until(
        "rounds have done it",
        () -> {
          store.collector().makeRound();
          return done.call();
        });
  }

  @Test
  void leavesOutADirectoryThatIsDownAndComesBackToIt() throws Exception {
    LocalFileStore store = opened(settings(32));
    goDown(store);
    fill();
    int there = blocks(failing);
    // Whatever touched the directory now would never come back.
    try (FaultyFiles.Hang _ = files.hang(failing, call -> true)) {
      store.collector().makeRound();
      assertThat(blocks(healthy)).as("a quarter of 32").isEqualTo(8);
      assertThat(blocks(failing)).isEqualTo(there);
      files.heal(failing);
      assertThat(store.volumes().get(FAILING).probe()).isTrue();
      store.collector().makeRound();
      assertThat(blocks(failing)).as("the coldest go first").isZero();
      assertThat(blocks(healthy)).isEqualTo(8);
      assertThat(stores.metrics.gauge("local_used_bytes")).isEqualTo(8.0 * FILE);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"stat", "remove", "forEachName"})
  void collectsTheOtherDirectoryWhileOneHangsInTheMiddle(String call) throws Exception {
    LocalFileStore store = opened(settings(32));
    try (FaultyFiles.Hang hang = files.hang(failing, call::equals)) {
      fill();
      Thread round = Thread.ofPlatform().start(store.collector()::makeRound);
      hang.awaitHeld(1);
      clock.advance(CHECK_TIMEOUT);
      assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
      int stay = call.equals("remove") ? 0 : 8;
      makeRoundsUntil(
          store, () -> blocks(healthy) == stay || (call.equals("remove") && fewerThanBefore()));
      assertThat(blocks(failing)).isGreaterThan(8);
      hang.end();
    }
    files.heal(failing);
    // Of both: the failing one's thread may be busy for some rounds more with what it was held
    // in.
    makeRoundsUntil(store, () -> blocks(failing) + blocks(healthy) <= 8);
  }

  private boolean fewerThanBefore() throws Exception {
    BlockPaths paths = new BlockPaths("Local", List.of(failing.toString(), healthy.toString()), 3);
    int before = 0;
    for (int i = 0; i < ids.size(); i++) {
      before += paths.directoryOf(ids.high(i), ids.low(i)) == FAILING ? 0 : 1;
    }
    return blocks(healthy) < before;
  }

  @Test
  void doesNotWaitForADirectoryWhoseBreakerOpensMeanwhile() throws Exception {
    LocalFileStore store = opened(settings(32));
    try (FaultyFiles.Hang hang = files.hang(failing, "stat"::equals)) {
      fill();
      Thread round = Thread.ofPlatform().start(store.collector()::makeRound);
      hang.awaitHeld(1);
      goDown(store);
      assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
      makeRoundsUntil(store, () -> blocks(healthy) == 8);
    }
  }

  @Test
  void closesInTimeWhileTheCollectorIsHeld() throws Exception {
    Map<String, Object> settings = settings(32);
    settings.put("timeout_ms", 200);
    LocalFileStore store = opened(settings);
    try (FaultyFiles.Hang hang = files.hang(failing, "stat"::equals)) {
      fill();
      Thread round = Thread.ofPlatform().start(store.collector()::makeRound);
      hang.awaitHeld(1);
      Thread closing = Thread.ofPlatform().start(store::close);
      assertThat(closing.join(TestStores.PATIENCE)).as("closed").isTrue();
      clock.advance(Duration.ofMillis(200));
      assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
    }
    Waiting.until("all threads end", () -> Waiting.threads("ucm-local-").isEmpty());
  }

  @Test
  void makesUpForScanAndSweepWhenTheDirectoryWorksAgain() throws Exception {
    fill();
    Path lease =
        Files.createDirectories(failing.resolve(".writers")).resolve("host-1-0123456789abcdef");
    Files.writeString(lease, "");
    files.fail(failing, Errno.EIO, call -> call.equals("list") || call.equals("forEachName"));
    Map<String, Object> settings = settings(100 * BLOCKS);
    settings.put("store_health.failure_threshold", 1);
    LocalFileStore store = stores.open(files, clock, settings);
    store.awaitScan();
    store.awaitSweep();
    assertThat(stores.metrics.gauge("local_health_state_0")).isEqualTo(2);
    assertThat(stores.metrics.gauge("local_index_complete")).isZero();
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(blocks(healthy));
    assertThat(lease).exists();
    files.heal(failing);
    assertThat(store.volumes().get(FAILING).probe()).isTrue();
    Waiting.until(
        "the scan is made up for", () -> stores.metrics.gauge("local_index_complete") == 1);
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(BLOCKS);
    Waiting.until("the sweep is made up for", () -> Files.notExists(lease));
  }

  private static void goDown(LocalFileStore store) {
    for (int i = 0; i < 8; i++) {
      store.volumes().get(FAILING).failedInBackground(new StoreException("failure " + i));
    }
    assertThat(store.volumes().get(FAILING).refusal()).isNotNull();
  }
}
