package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ForkJoinWorkerThread;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldClock;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What runs in the background writes, their bound, and threads at rest. */
@Timeout(180)
final class BackgroundTest extends OverHeldNext {
  private static final int MAX_WRITES = 32;

  @Test
  void writesToTheNextStageAreBounded() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 4 * MAX_WRITES, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, MAX_WRITES + 8);
      for (int i = 0; i < ids.size(); i++) {
        cache.dump(ids.slice(i, i + 1));
      }
      List<HeldNext.Held> writes = new ArrayList<>();
      for (int i = 0; i < MAX_WRITES; i++) {
        writes.add(next.nextDump());
      }
      // No task waits for them, and yet a flush that hurries lets no more of them go.
      assertThat(cache.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(ids.size());
      assertThat(next.dumps).isEmpty();
      writes.removeFirst().takeAll();
      writes.add(next.nextDump());
      assertThat(next.dumps).isEmpty();
      writes.forEach(HeldNext.Held::takeAll);
      for (int i = 0; i < 7; i++) {
        next.nextDump().takeAll();
      }
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
      assertThat(cache.pool().referenced()).isZero();
    }
  }

  @Test
  void bytesOnTheirWayToTheNextStageAreBounded() throws InterruptedException {
    BlockLayout large = BlockLayout.uniform(16 << 20, 16 << 20, 16 << 20);
    int most = 8;
    BlockIds ids = BlockBytes.ids(1, most + 2);
    try (TestCache cache = new TestCache(large, next, ids.size(), Map.of())) {
      TransferMemory memory = TransferMemory.ofBlocks(large, Placement.PACKED, ids);
      cache.store.dump(memory.fill().transfer()).await(PATIENCE).requireOk();
      List<HeldNext.Held> writes = new ArrayList<>();
      for (int i = 0; i < most; i++) {
        writes.add(next.nextDump());
      }
      assertThat(cache.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(ids.size());
      assertThat(next.dumps).isEmpty();
      writes.forEach(HeldNext.Held::takeAll);
      for (int i = most; i < ids.size(); i++) {
        next.nextDump().takeAll();
      }
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    }
  }

  @Test
  void hasRoomWhenTheNextStageHasItForAllThatTheBufferHolds() {
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of())) {
      long buffer = cache.opened().config.capacityBytes();
      next.room = buffer + 5;
      assertThat(cache.store.hasRoom(5)).isTrue();
      assertThat(cache.store.hasRoom(6)).isFalse();
    }
  }

  @Test
  void failuresThatAnInterruptedFlushWasToldReachTheNextOne() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 2);
      cache.dump(ids.slice(0, 1));
      StoreException full = new StoreException("No space left on device");
      next.nextDump().endAll(ShardOutcome.FAILED, full);
      next.onFlush =
          () -> {
            throw new InterruptedException();
          };
      assertThatThrownBy(() -> cache.store.flush(PATIENCE))
          .isInstanceOf(InterruptedException.class);
      next.onFlush = () -> new FlushResult(0, ids, 2, null);
      FlushResult flushed = cache.store.flush(PATIENCE);
      assertThat(flushed.failedBlocks()).isEqualTo(ids);
      assertThat(flushed.failedCount()).isEqualTo(2);
      assertThat(flushed.cause()).isSameAs(full);
      next.onFlush = FlushResult::clean;
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    }
  }

  @Test
  void jobThatThrowsDoesNotSwallowWhatCameBeforeIt() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 2, Map.of())) {
      cache.dump(BlockBytes.ids(1, 1));
      HeldNext.Held write = next.nextDump();
      TransferMemory memory =
          TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, BlockBytes.ids(2, 1));
      Task load = cache.store.load(memory.transfer());
      cache.awaitWanting();
      Dispatcher dispatcher = cache.opened().dispatcher;
      // The dispatcher finds both at once: that slots came free, and the job.
      synchronized (dispatcher) {
        write.takeAll();
        dispatcher.submit(
            () -> {
              throw new IllegalStateException("a job that fails, for a test");
            });
      }
      next.nextLoad().serveAll();
      load.await(PATIENCE).requireOk();
      memory.check();
    }
  }

  @Test
  void closeSaysWhatItDropped() throws InterruptedException {
    List<String> lines =
        warnings(
            CacheRuntime.class,
            () -> {
              HeldClock clock = new HeldClock();
              TestCache cache = new TestCache(LAYOUT, next, 8, Map.of("timeout_ms", 50), clock);
              cache.dump(BlockBytes.ids(1, 3));
              cache.store.load(memory(BlockBytes.ids(2, 1)).transfer());
              HeldNext.Held write = next.nextDump();
              clock.letGo();
              cache.close();
              assertThat(write.transfer.shardCount()).isEqualTo(6);
            });
    assertThat(lines)
        .anyMatch(line -> line.contains("3 dumped blocks were not written to the next stage"))
        .anyMatch(line -> line.contains("still works on 2 transfers"));
  }

  @Test
  void saysOnceThatTheNextStageDoesNotWriteAndAgainWhenThatIsLongPast()
      throws InterruptedException {
    StoreException full = new StoreException("the disk is full");
    ManualClock clock = new ManualClock();
    List<String> lines =
        warnings(
            FailedWrites.class,
            () -> {
              TestCache cache = new TestCache(LAYOUT, next, 8, Map.of(), clock);
              for (int seed = 1; seed <= 4; seed++) {
                cache.dump(BlockBytes.ids(seed, 3));
                next.nextDump().endAll(ShardOutcome.FAILED, full);
                assertThat(cache.store.flush(PATIENCE).failedCount()).isEqualTo(3);
                clock.advance(Duration.ofMinutes(seed == 3 ? 11 : 9));
              }
              cache.close();
            });
    assertThat(lines)
        .hasSize(2)
        .allMatch(line -> line.contains("Held") && line.contains("is full"));
  }

  private interface Steps {
    void run() throws InterruptedException;
  }

  /** What a class warns of meanwhile. */
  private static List<String> warnings(Class<?> of, Steps steps) throws InterruptedException {
    Logger logger = (Logger) LoggerFactory.getLogger(of);
    ListAppender<ILoggingEvent> lines = new ListAppender<>();
    lines.start();
    logger.addAppender(lines);
    logger.setAdditive(false);
    logger.setLevel(Level.WARN);
    try {
      steps.run();
    } finally {
      logger.detachAppender(lines);
      logger.setLevel(null);
      logger.setAdditive(true);
    }
    return lines.list.stream()
        .filter(line -> line.getLevel() == Level.WARN)
        .map(ILoggingEvent::getFormattedMessage)
        .toList();
  }

  @Test
  void noThreadOutlivesCloseWhereTheMemoryDoes() throws InterruptedException {
    HeldClock clock = new HeldClock();
    // So much that it is not all given by then.
    Map<String, Object> large = Map.of("cache_buffer_capacity_gb", 4, "timeout_ms", 50);
    TestCache cache = new TestCache(LAYOUT, next, 8, large, clock);
    cache.dump(BlockBytes.ids(1, 1));
    HeldNext.Held write = next.nextDump();
    clock.letGo();
    cache.close();
    assertThat(cacheThreads()).isEmpty();
    // The memory is freed only now.
    write.takeAll();
    assertThat(cache.opened().traffic.awaitNone(PATIENCE.toNanos())).isZero();
  }

  @Test
  void threadsSleepWhenThereIsNothingToDo() throws InterruptedException {
    try (TestCache cache =
        new TestCache(LAYOUT, next, 8, Map.of("timeout_ms", 20), new ManualClock())) {
      BlockIds ids = BlockBytes.ids(1, 2);
      cache.dump(ids);
      next.nextDump().takeAll();
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
      List<Thread> threads = cacheThreads();
      assertThat(threads).extracting(Thread::getName).contains("ucm-cache-dispatch-0");
      // Asleep until they are woken: not with a timeout, which would be a poll, but for the minute
      // after which a pool's idle thread ends.
      long end = System.nanoTime() + PATIENCE.toNanos();
      while (!threads.stream().allMatch(BackgroundTest::sleeps)) {
        assertThat(System.nanoTime()).as("%s", threads).isLessThan(end);
        Thread.onSpinWait();
      }
    }
    assertThat(cacheThreads()).isEmpty();
  }

  private static boolean sleeps(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TERMINATED
        || (thread instanceof ForkJoinWorkerThread
            && thread.getState() == Thread.State.TIMED_WAITING);
  }

  private static List<Thread> cacheThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.isAlive() && thread.getName().startsWith("ucm-cache-"))
        .toList();
  }
}
