package ucm.store.file.health;

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
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.store.file.fixture.LocalFileStore;
import ucm.store.file.fixture.SickFiles;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;

/** Work in the background on two directories, of which one is ill. */
final class SickCollectorTest {

  private static final Duration CHECK_TIMEOUT = Duration.ofSeconds(3);
  private static final int BLOCKS = 48;
  private static final int SICK = 0;

  @TempDir private Path parent;

  private final SickFiles files = new SickFiles();
  private final ManualClock clock = new ManualClock();
  private final BlockIds ids = BlockBytes.ids(90, BLOCKS);
  private Path sick;
  private Path well;

  @BeforeEach
  void makeDirectories() throws Exception {
    sick = Files.createDirectory(parent.resolve("sick"));
    well = Files.createDirectory(parent.resolve("well"));
  }

  private Map<String, Object> settings(int blocks) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("storage_backends", List.of(sick.toString(), well.toString()));
    settings.put("store_health.enabled", true);
    settings.put("store_health.health_check_interval_s", 86_400);
    settings.put("posix_gc_trigger_threshold_ratio", 0.25);
    settings.put("posix_gc_recycle_percent", 0);
    return SmallSpace.room(blocks, settings);
  }

  /** Blocks in both directories, written by another store; those of the sick one are the coldest. */
  private void fill() throws Exception {
    Map<String, Object> settings = settings(100 * BLOCKS);
    settings.put("posix_capacity_gb", 0);
    settings.remove("posix_gc_trigger_threshold_ratio");
    try (TestStores others = new TestStores(parent, LAYOUT)) {
      others.dump(others.open(settings), ids);
    }
    for (Path block : SmallSpace.blocks(sick)) {
      SmallSpace.usedAt(block, 1);
    }
    assertThat(blocks(sick)).isBetween(9, BLOCKS - 9);
  }

  /** A store that has done what it does when it opens. */
  private LocalFileStore opened(TestStores stores, Map<String, Object> settings) throws Exception {
    LocalFileStore store = stores.open(files.seam(), clock, settings);
    store.awaitScan();
    store.awaitSweep();
    store.keeper().awaitFirstRound();
    return store;
  }

  private static int blocks(Path directory) throws Exception {
    return SmallSpace.blocks(directory).size();
  }

  private void makeRoundsUntil(LocalFileStore store, Callable<Boolean> done) throws Exception {
    long end = System.nanoTime() + TestStores.PATIENCE.toNanos();
    while (!done.call()) {
      assertThat(System.nanoTime()).as("patience").isLessThan(end);
      store.keeper().makeRound();
    }
  }

  @Test
  void leavesOutADirectoryThatIsDownAndComesBackToIt() throws Exception {
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = opened(stores, settings(32));
      goDown(store);
      fill();
      int there = blocks(sick);
      // Whatever touched the directory now would never come back.
      try (SickFiles.Hang _ = files.hang(sick, call -> true)) {
        store.keeper().makeRound();
        assertThat(blocks(well)).as("a quarter of 32").isEqualTo(8);
        assertThat(blocks(sick)).isEqualTo(there);
        files.heal(sick);
        assertThat(store.health().probe(SICK)).isTrue();
        store.keeper().makeRound();
        assertThat(blocks(sick)).as("the coldest go first").isZero();
        assertThat(blocks(well)).isEqualTo(8);
        assertThat(stores.metrics.gauge("posix_used_bytes")).isEqualTo(8.0 * FILE);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"stat", "remove", "forEachName"})
  void collectsTheOtherDirectoryWhileOneHangsInTheMiddle(String call) throws Exception {
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = opened(stores, settings(32));
      try (SickFiles.Hang hang = files.hang(sick, call::equals)) {
        fill();
        Thread round = Thread.ofPlatform().start(store.keeper()::makeRound);
        hang.awaitHeld(1);
        clock.advance(CHECK_TIMEOUT);
        assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
        int stay = call.equals("remove") ? 0 : 8;
        makeRoundsUntil(
            store, () -> blocks(well) == stay || (call.equals("remove") && fewerThanBefore()));
        assertThat(blocks(sick)).isGreaterThan(8);
        hang.end();
      }
      files.heal(sick);
      // Of both: the sick one's lane may be busy for some rounds more with what it was held in.
      makeRoundsUntil(store, () -> blocks(sick) + blocks(well) <= 8);
    }
  }

  private boolean fewerThanBefore() throws Exception {
    BlockPaths paths = new BlockPaths("Posix", List.of(sick.toString(), well.toString()), 3);
    int before = 0;
    for (int i = 0; i < ids.size(); i++) {
      before += paths.backendOf(ids.high(i), ids.low(i)) == SICK ? 0 : 1;
    }
    return blocks(well) < before;
  }

  @Test
  void doesNotWaitForADirectoryWhoseBreakerOpensMeanwhile() throws Exception {
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = opened(stores, settings(32));
      try (SickFiles.Hang hang = files.hang(sick, "stat"::equals)) {
        fill();
        Thread round = Thread.ofPlatform().start(store.keeper()::makeRound);
        hang.awaitHeld(1);
        goDown(store);
        assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
        makeRoundsUntil(store, () -> blocks(well) == 8);
      }
    }
  }

  @Test
  void closesInTimeWhileTheCollectorIsHeld() throws Exception {
    Map<String, Object> settings = settings(32);
    settings.put("timeout_ms", 200);
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = opened(stores, settings);
      try (SickFiles.Hang hang = files.hang(sick, "stat"::equals)) {
        fill();
        Thread round = Thread.ofPlatform().start(store.keeper()::makeRound);
        hang.awaitHeld(1);
        Thread closing = Thread.ofPlatform().start(store::close);
        assertThat(closing.join(TestStores.PATIENCE)).as("closed").isTrue();
        clock.advance(Duration.ofMillis(200));
        assertThat(round.join(TestStores.PATIENCE)).as("the round ended").isTrue();
      }
      Waiting.until("all threads end", () -> Waiting.threads("ucm-posix-").isEmpty());
    }
  }

  @Test
  void makesUpForScanAndSweepWhenTheDirectoryWorksAgain() throws Exception {
    fill();
    Path claim =
        Files.createDirectories(sick.resolve(".writers")).resolve("host-1-0123456789abcdef");
    Files.writeString(claim, "");
    files.fail(sick, Errno.EIO, call -> call.equals("list") || call.equals("forEachName"));
    Map<String, Object> settings = settings(100 * BLOCKS);
    settings.put("store_health.failure_threshold", 1);
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = stores.open(files.seam(), clock, settings);
      store.awaitScan();
      store.awaitSweep();
      assertThat(stores.metrics.gauge("posix_health_state_0")).isEqualTo(2);
      assertThat(stores.metrics.gauge("posix_index_complete")).isZero();
      assertThat(stores.metrics.gauge("posix_index_blocks")).isEqualTo(blocks(well));
      assertThat(claim).exists();
      files.heal(sick);
      assertThat(store.health().probe(SICK)).isTrue();
      awaitGauge(stores, "posix_index_complete", 1);
      assertThat(stores.metrics.gauge("posix_index_blocks")).isEqualTo(BLOCKS);
      Waiting.until("the sweep is made up for", () -> Files.notExists(claim));
    }
  }

  private static void awaitGauge(TestStores stores, String name, double value) {
    long end = System.nanoTime() + TestStores.PATIENCE.toNanos();
    while (stores.metrics.gauge(name) != value) {
      assertThat(System.nanoTime()).as("patience for %s", name).isLessThan(end);
      Thread.onSpinWait();
    }
  }

  private static void goDown(LocalFileStore store) {
    for (int i = 0; i < 8; i++) {
      store.health().failedInBackground(SICK, new StoreException("failure " + i));
    }
    assertThat(store.health().refusal(SICK)).isNotNull();
  }
}
