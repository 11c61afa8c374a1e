package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
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
import ucm.api.config.StoreConfig;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreConfig.Health;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.volume.Breaker.State;

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
        new LibcFileOperations(),
        PATHS,
        List.of(probe, () -> {}),
        rules,
        TIMEOUT_NANOS,
        StoreMetrics.NONE,
        time,
        volume -> {
          down.add(volume.number);
          isDown.countDown();
        },
        volume -> isUp.countDown());
  }

  /** A thread that moves shards in a directory until it is told to leave. */
  private static CountDownLatch entered(Volumes health, int directory) throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch leaves = new CountDownLatch(1);
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              health.get(directory).enter();
              inside.countDown();
              try {
                leaves.await();
              } catch (InterruptedException e) {
                throw new AssertionError(e);
              }
              health.get(directory).leave(true, null);
            });
    inside.await();
    return leaves;
  }

  @Test
  void countsALateOperationOnceAndNotItsResult() {
    Volumes health = health(RARELY, clock::get, () -> {});
    health.get(0).enter();
    clock.addAndGet(TIMEOUT_NANOS - 1);
    health.findLateOperations();
    health.get(0).leave(true, null);
    health.get(0).enter();
    clock.addAndGet(TIMEOUT_NANOS + 1);
    health.findLateOperations();
    health.findLateOperations();
    assertThat(health.get(0).state()).as("one failure").isEqualTo(State.CLOSED);
    health.get(0).leave(true, new StoreException("counted already"));
    assertThat(health.get(0).state()).isEqualTo(State.CLOSED);
    health.get(0).failedInBackground(new StoreException("the second"));
    assertThat(health.get(0).state()).isEqualTo(State.OPEN);
    assertThat(down).containsExactly(0);
  }

  @Test
  void countsTheWorkersThatADirectoryHoldsWhichIsDown() throws Exception {
    Volumes health = health(RARELY, clock::get, () -> {});
    CountDownLatch first = entered(health, 0);
    CountDownLatch other = entered(health, 1);
    var _ = health.get(0).beginLookup();
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
            made.getFirst().get(1).enter();
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
    health.get(0).failedInBackground(new StoreException("first"));
    health.get(0).failedInBackground(new StoreException("second"));
    Thread prober = Thread.ofPlatform().start(() -> health.get(0).probe());
    begun.acquire();
    assertThat(health.get(0).state()).isEqualTo(State.HALF_OPEN);
    clock.addAndGet(TIMEOUT_NANOS);
    health.findLateOperations();
    assertThat(health.get(0).state()).isEqualTo(State.OPEN);
    assertThat(health.get(0).probe()).as("no second one beside it").isFalse();
    ends.release();
    prober.join();
    assertThat(health.get(0).state()).as("it was too late").isEqualTo(State.OPEN);
    ends.release();
    assertThat(health.get(0).probe()).isTrue();
    assertThat(health.get(0).state()).isEqualTo(State.CLOSED);
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
      assertThat(health.get(0).refusal()).isNull();
      timer.close();
    }
  }

  @Test
  void findsAHangingOperationByItself() throws Exception {
    Health strict = new Health(true, Long.MAX_VALUE / 4, 4_000_000, 1, 1);
    Volumes health = health(strict, System::nanoTime, () -> {});
    try (health) {
      health.start(timer);
      health.get(0).enter();
      isDown.await();
      assertThat(health.get(0).refusal()).hasMessageContaining("0.004 s");
      timer.close();
    }
  }

  @Test
  void doesNotTakeAWriterForLateThatWaitsForRoom() {
    Health strict = new Health(true, Long.MAX_VALUE / 4, TIMEOUT_NANOS, 1, 1);
    Volumes health = health(strict, clock::get, () -> {});
    FileStoreConfig config =
        FileStoreConfig.from(
                LocalFileStore.KIND,
                StoreConfig.of(
                    SmallSpace.capacity(
                        1,
                        Map.of(
                            "storage_backends",
                            "/first",
                            "block_size",
                            4096,
                            "local_gc_trigger_threshold_ratio",
                            1.0))))
            .orElseThrow();
    SpaceLimit space = new SpaceLimit(config, PATHS, health, amount -> {});
    Volume volume = health.get(0);
    space.roundEnded(true);
    volume.enter();
    space.reserve(volume, 1, 1, SmallSpace.FILE);
    space.whenPressed(
        () -> {
          clock.addAndGet(TIMEOUT_NANOS);
          health.findLateOperations();
          // It gets the lock when the writer waits.
          var _ =
              CompletableFuture.runAsync(
                  () -> {
                    space.release(volume, SmallSpace.FILE);
                    space.roundEnded(true);
                  });
        });
    space.reserve(volume, 2, 2, SmallSpace.FILE);
    assertThat(volume.refusal()).as("it was not late").isNull();
    assertThat(health.endOperation()).as("and goes on").isTrue();
  }

  private static void breakTheFirst(Volume volume) {
    if (volume.number == 0) {
      throw new StackOverflowError("made up by the test");
    }
  }

  @Test
  void worksInADirectoryAgainAfterAnError() {
    try (Volumes health = health(RARELY, clock::get, () -> {})) {
      assertThat(health.forEach(health.all(), VolumesTest::breakTheFirst))
          .containsExactly(health.get(1));
      assertThat(health.forEach(health.all(), volume -> {})).containsAll(health.all());
      assertThat(health.get(0).refusal()).as("once is not often enough").isNull();
      health.forEach(health.all(), VolumesTest::breakTheFirst);
      assertThat(health.get(0).refusal())
          .hasMessageContaining("first")
          .hasMessageContaining("made up by the test");
      assertThat(health.get(1).refusal()).isNull();
      assertThat(health.forEach(health.all(), volume -> {}))
          .as("left out while it is down")
          .containsExactly(health.get(1));
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
