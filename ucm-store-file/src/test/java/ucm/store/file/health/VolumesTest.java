package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.LocalFileStore;
import ucm.store.file.config.FileStoreConfig.Health;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.health.Breaker.State;

/** Operations and probes that take too long, in two directories. */
@Timeout(60)
final class VolumesTest {

  // So long that only the tests find late operations.
  private static final long TIMEOUT_NANOS = Long.MAX_VALUE / 8;
  private static final Health RARELY = new Health(true, Long.MAX_VALUE / 4, TIMEOUT_NANOS, 8, 2);
  private static final BlockPaths PATHS = new BlockPaths("Local", List.of("first", "second"), 3);

  private final AtomicLong clock = new AtomicLong();
  private final List<Integer> down = new ArrayList<>();
  private final CountDownLatch isDown = new CountDownLatch(1);
  private final CountDownLatch isUp = new CountDownLatch(1);
  private final TimeoutScheduler timer = new TimeoutScheduler(LocalFileStore.KIND);

  private Volumes health(Health rules, LongSupplier time, Runnable probe) {
    return new Volumes(
        LocalFileStore.KIND,
        PATHS,
        List.of(probe, () -> {}),
        rules,
        TIMEOUT_NANOS,
        StoreMetrics.NONE,
        time,
        directory -> {
          down.add(directory);
          isDown.countDown();
        },
        directory -> isUp.countDown());
  }

  /** A thread that moves shards in a directory until it is told to leave. */
  private static CountDownLatch entered(Volumes health, int directory) throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch leaves = new CountDownLatch(1);
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              health.enter(directory);
              inside.countDown();
              try {
                leaves.await();
              } catch (InterruptedException e) {
                throw new AssertionError(e);
              }
              health.leave(directory, true, null);
            });
    inside.await();
    return leaves;
  }

  @Test
  void countsALateOperationOnceAndNotItsResult() {
    Volumes health = health(RARELY, clock::get, () -> {});
    health.enter(0);
    clock.addAndGet(TIMEOUT_NANOS - 1);
    health.findLateOperations();
    health.leave(0, true, null);
    health.enter(0);
    clock.addAndGet(TIMEOUT_NANOS + 1);
    health.findLateOperations();
    health.findLateOperations();
    assertThat(health.state(0)).as("one failure").isEqualTo(State.CLOSED);
    health.leave(0, true, new StoreException("counted already"));
    assertThat(health.state(0)).isEqualTo(State.CLOSED);
    health.failedInBackground(0, new StoreException("the second"));
    assertThat(health.state(0)).isEqualTo(State.OPEN);
    assertThat(down).containsExactly(0);
  }

  @Test
  void countsTheWorkersThatADirectoryHoldsWhichIsDown() throws Exception {
    Volumes health = health(RARELY, clock::get, () -> {});
    CountDownLatch first = entered(health, 0);
    CountDownLatch other = entered(health, 1);
    var _ = health.beginLookup(0);
    assertThat(health.heldWorkers()).isZero();
    clock.addAndGet(TIMEOUT_NANOS + 1);
    health.findLateOperations();
    assertThat(health.heldWorkers()).as("the first is down").isEqualTo(1);
    first.countDown();
    while (health.heldWorkers() > 0) {
      Thread.onSpinWait();
    }
    other.countDown();
  }

  @Test
  void doesNotTakeAnOperationForLateThatBeganWhileItWasLooking() throws Exception {
    AtomicBoolean isHeld = new AtomicBoolean();
    List<Volumes> made = new ArrayList<>();
    LongSupplier heldAfterRun =
        () -> {
          long now = clock.get();
          if (isHeld.getAndSet(false)) {
            clock.addAndGet(TIMEOUT_NANOS);
            made.getFirst().enter(1);
          }
          return now;
        };
    Health strict = new Health(true, Long.MAX_VALUE / 4, TIMEOUT_NANOS, 1, 1);
    Volumes health = health(strict, heldAfterRun, () -> {});
    made.add(health);
    CountDownLatch leaves = entered(health, 0);
    isHeld.set(true);
    health.findLateOperations();
    health.findLateOperations();
    assertThat(down).containsExactly(0);
    clock.addAndGet(TIMEOUT_NANOS);
    health.findLateOperations();
    assertThat(down).containsExactly(0, 1);
    leaves.countDown();
  }

  @Test
  void takesALateProbeForFailedAndTheNextOneDecides() throws Exception {
    Semaphore begun = new Semaphore(0);
    Semaphore ends = new Semaphore(0);
    Volumes health =
        health(
            RARELY,
            clock::get,
            () -> {
              begun.release();
              ends.acquireUninterruptibly();
            });
    health.failedInBackground(0, new StoreException("first"));
    health.failedInBackground(0, new StoreException("second"));
    Thread prober = Thread.ofPlatform().start(() -> health.probe(0));
    begun.acquire();
    assertThat(health.state(0)).isEqualTo(State.HALF_OPEN);
    clock.addAndGet(TIMEOUT_NANOS);
    health.findLateOperations();
    assertThat(health.state(0)).isEqualTo(State.OPEN);
    assertThat(health.probe(0)).as("no second one beside it").isFalse();
    ends.release();
    prober.join();
    assertThat(health.state(0)).as("it was too late").isEqualTo(State.OPEN);
    ends.release();
    assertThat(health.probe(0)).isTrue();
    assertThat(health.state(0)).isEqualTo(State.CLOSED);
  }

  @Test
  void findsAnIdleDirectoryFailingAndWellAgainByItself() throws Exception {
    AtomicBoolean failing = new AtomicBoolean(true);
    Health often = new Health(true, 1_000_000, TIMEOUT_NANOS, 8, 2);
    Volumes health =
        health(
            often,
            System::nanoTime,
            () -> {
              if (failing.get()) {
                throw new StoreException("failing");
              }
            });
    try (health) {
      health.start(timer);
      isDown.await();
      assertThat(down).containsExactly(0);
      failing.set(false);
      isUp.await();
      assertThat(health.refusal(0)).isNull();
      timer.close();
    }
  }

  @Test
  void findsAHangingOperationByItself() throws Exception {
    Health strict = new Health(true, Long.MAX_VALUE / 4, 4_000_000, 1, 1);
    Volumes health = health(strict, System::nanoTime, () -> {});
    try (health) {
      health.start(timer);
      health.enter(0);
      isDown.await();
      assertThat(health.refusal(0)).hasMessageContaining("0.004 s");
      timer.close();
    }
  }

  private static void breakTheFirst(int directory) {
    if (directory == 0) {
      throw new StackOverflowError("made up by the test");
    }
  }

  @Test
  void worksInADirectoryAgainAfterAnError() {
    try (Volumes health = health(RARELY, clock::get, () -> {})) {
      BitSet done = health.forEach(health.all(), VolumesTest::breakTheFirst);
      assertThat(done.stream()).containsExactly(1);
      done = health.forEach(health.all(), directory -> {});
      assertThat(done.stream()).containsExactly(0, 1);
      assertThat(health.refusal(0)).as("once is not often enough").isNull();
      health.forEach(health.all(), VolumesTest::breakTheFirst);
      assertThat(health.refusal(0))
          .hasMessageContaining("first")
          .hasMessageContaining("made up by the test");
      assertThat(health.refusal(1)).isNull();
      done = health.forEach(health.all(), directory -> {});
      assertThat(done.stream()).as("left out while it is down").containsExactly(1);
    }
  }

  @Test
  void doesAtOnceWhatComesAfterTheLastCleanup() {
    try (Volumes health = health(RARELY, clock::get, () -> {})) {
      AtomicInteger done = new AtomicInteger();
      health.later(done::incrementAndGet);
      health.awaitCleanup();
      assertThat(done).hasValue(1);
      health.later(done::incrementAndGet);
      assertThat(done).hasValue(2);
    }
  }
}
