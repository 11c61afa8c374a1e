package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.store.cache.CacheStore;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.fixture.HeldClock;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;
import ucm.testkit.fault.MemoryStore;

@Timeout(180)
final class CloseTest extends OverHeldNext {
  private static final int BLOCKS = 10;
  private static final int ROUNDS = 150;

  @Test
  void closeRightAfterAwaitLosesNothing() throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    for (int round = 0; round < ROUNDS; round++) {
      BlockIds ids = BlockBytes.ids(round, BLOCKS);
      // A pool of fewer slots than there are shards in half of the rounds.
      int slots = round % 2 == 0 ? 2 * BLOCKS : BLOCKS / 2;
      try (TestCache cache = new TestCache(LAYOUT, new MemoryStore(volume), slots, Map.of())) {
        cache.dump(ids);
      }
      assertThat(volume.size()).isEqualTo(BLOCKS * (round + 1));
    }
  }

  @Test
  void closeEndsTasksOfAHangingBackendWithinTheDeadline() throws InterruptedException {
    BlockIds ids = BlockBytes.ids(1, 2);
    TransferMemory memory = memory(ids).scribble();
    HeldClock clock = new HeldClock();
    TestCache cache = new TestCache(LAYOUT, next, 8, Map.of("timeout_ms", 100), clock);
    Task load = cache.store.load(memory.transfer());
    HeldNext.Held read = next.nextLoad();
    cache.store.dump(memory(BlockBytes.ids(2, 1)).fill().transfer()).await(PATIENCE).requireOk();
    HeldNext.Held write = next.nextDump();
    clock.letGo();
    cache.close();
    TransferResult result = load.await(Duration.ZERO);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    // The pool's memory is still there for those who write to it and read from it.
    MemorySegment slot = read.slot(0);
    read.serveAll();
    memory.checkScribbled();
    assertThat(slot.scope().isAlive()).isTrue();
    write.takeAll();
    assertThat(slot.scope().isAlive()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void closeByAThreadThatIsInterruptedLeavesNoThreadAndNoMemory(boolean shared)
      throws InterruptedException {
    Set<Thread> before = Thread.getAllStackTraces().keySet();
    BlockIds ids = BlockBytes.ids(1, 2);
    Map<String, Object> settings =
        shared ? TestCache.shared("interrupted", LAYOUT, 8) : Map.<String, Object>of();
    TestCache cache = new TestCache(LAYOUT, new MemoryStore(), 8, settings);
    PoolMemory memory = cache.opened().memory;
    cache.dump(ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    cache.requireLoads(ids);
    Thread.currentThread().interrupt();
    cache.store.close();
    assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
    cache.close();
    assertThat(Thread.getAllStackTraces().keySet())
        .filteredOn(thread -> !before.contains(thread))
        .extracting(Thread::getName)
        .noneMatch(name -> name.startsWith("ucm-cache"));
    assertThat(memory.region().segment().scope().isAlive()).isFalse();
  }

  @Test
  void closeWhileTwoThreadsSubmitEndsEveryTask() throws InterruptedException {
    for (int round = 0; round < 30; round++) {
      TestCache cache = new TestCache(LAYOUT, new MemoryStore(), 8, Map.of());
      Submitter first = new Submitter(cache, 2 * round);
      Submitter second = new Submitter(cache, 2 * round + 1);
      first.awaitSome();
      second.awaitSome();
      cache.close();
      first.requireAllEnded();
      second.requireAllEnded();
    }
  }

  @Test
  void moreMemoryThanThereIsIsRefusedAtOpen() {
    BlockLayout large = BlockLayout.uniform(1 << 30, 1 << 30, 1 << 30);
    CacheStore store = new CacheStore();
    Map<String, Object> settings = StoreFixture.workerKeys(large);
    settings.put("cache_buffer_capacity_gb", 1 << 20);
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    // A warning says it beside what the machine has; opening refuses it.
    assertThat(config.problems()).noneMatch(problem -> problem.isError());
    assertThatThrownBy(() -> store.open(StoreContext.of(null)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("needs 1048576.0 GiB")
        .hasMessageContaining("lower cache_buffer_capacity_gb");
    assertThatThrownBy(() -> store.lookup(BlockIds.empty()))
        .isInstanceOf(StoreClosedException.class);
    store.close();
  }

  /** A thread that dumps and loads until the store is closed. */
  private static final class Submitter {

    private final CountDownLatch some = new CountDownLatch(20);
    private final List<Task> tasks = new CopyOnWriteArrayList<>();
    private final Thread thread;

    private Submitter(TestCache cache, int seed) {
      thread = Thread.ofPlatform().start(() -> submit(cache, seed));
    }

    private void submit(TestCache cache, int seed) {
      BlockIds ids = BlockBytes.ids(seed, 6);
      try {
        while (true) {
          tasks.add(cache.store.dump(memory(ids).fill().transfer()));
          tasks.add(cache.store.load(memory(ids).transfer()));
          some.countDown();
        }
      } catch (StoreClosedException e) {
        some.countDown();
      }
    }

    private void awaitSome() throws InterruptedException {
      assertThat(some.await(60, TimeUnit.SECONDS)).isTrue();
    }

    private void requireAllEnded() throws InterruptedException {
      thread.join();
      for (Task task : tasks) {
        task.await(PATIENCE);
      }
    }
  }
}
