package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.health.CircuitBreaker.State;
import ucm.store.file.health.HealthMonitor.Rules;
import ucm.store.file.health.HealthMonitor.Volume;

final class HealthMonitorTest {

  // So long that only the tests find late operations.
  private static final long TIMEOUT_NANOS = TimeUnit.HOURS.toNanos(1);
  private static final Rules RARELY = new Rules(Long.MAX_VALUE / 4, TIMEOUT_NANOS, 8, 2);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final AtomicLong clock = new AtomicLong();
  private final List<Integer> down = new ArrayList<>();

  private HealthMonitor monitor(Rules rules, Runnable... probes) {
    List<Volume> volumes = new ArrayList<>();
    for (Runnable probe : probes) {
      volumes.add(new Volume("volume " + volumes.size(), probe));
    }
    return new HealthMonitor(
        "Test", volumes, rules, StoreMetrics.NONE, clock::get, down::add, (thread, error) -> {});
  }

  @Test
  void refusesAVolumeAfterFailuresUntilAProbeGoesWell() {
    HealthMonitor monitor = monitor(RARELY, () -> {}, () -> {});
    monitor.failed(1, new StoreException("first"));
    assertThat(monitor.refusal(1)).isNull();
    monitor.failed(1, new StoreException("second"));
    assertThat(down).containsExactly(1);
    assertThat(monitor.refusal(1)).hasMessageContaining("volume 1").hasMessageContaining("second");
    assertThat(monitor.refusal(0)).isNull();
    assertThat(monitor.probe(1)).isTrue();
    assertThat(monitor.refusal(1)).isNull();
    assertThat(monitor.state(1)).isEqualTo(State.CLOSED);
  }

  @Test
  void countsAFaultOnceThatSeveralTellOf() {
    HealthMonitor monitor = monitor(RARELY, () -> {});
    StoreException fault = new StoreException("of a block that four threads write");
    for (int i = 0; i < 4; i++) {
      monitor.failed(0, fault);
    }
    assertThat(monitor.state(0)).isEqualTo(State.CLOSED);
    monitor.failed(0, new StoreException("another"));
    assertThat(monitor.state(0)).isEqualTo(State.OPEN);
  }

  @Test
  void countsALateOperationOnceAndNotItsResult() {
    HealthMonitor monitor = monitor(RARELY, () -> {});
    VolumeOperation late = monitor.newOperation(VolumeOperation.Kind.TRANSFER);
    VolumeOperation inTime = monitor.newOperation(VolumeOperation.Kind.TRANSFER);
    monitor.begin(late, 0);
    monitor.begin(inTime, 0);
    monitor.findLateOperations();
    assertThat(monitor.end(inTime)).isTrue();
    monitor.begin(inTime, 0);
    clock.addAndGet(TIMEOUT_NANOS);
    monitor.findLateOperations();
    clock.addAndGet(TIMEOUT_NANOS - 1);
    monitor.findLateOperations();
    assertThat(monitor.state(0)).as("one failure").isEqualTo(State.CLOSED);
    assertThat(monitor.end(late)).as("counted already").isFalse();
    assertThat(monitor.end(inTime)).isTrue();
    monitor.failed(0, new StoreException("the second"));
    assertThat(monitor.state(0)).isEqualTo(State.OPEN);
    monitor.close(PATIENCE);
  }

  @Test
  void countsTheTransfersUnderWayAlsoLateOnes() {
    HealthMonitor monitor = monitor(RARELY, () -> {}, () -> {});
    VolumeOperation transfer = monitor.newOperation(VolumeOperation.Kind.TRANSFER);
    VolumeOperation other = monitor.newOperation(VolumeOperation.Kind.TRANSFER);
    VolumeOperation lookup = monitor.newOperation(VolumeOperation.Kind.LOOKUP);
    assertThat(monitor.transfers(0)).isZero();
    monitor.begin(transfer, 0);
    monitor.begin(other, 1);
    monitor.begin(lookup, 0);
    assertThat(monitor.transfers(0)).isEqualTo(1);
    monitor.findLateOperations();
    clock.addAndGet(TIMEOUT_NANOS);
    monitor.findLateOperations();
    assertThat(monitor.transfers(0)).as("found late").isEqualTo(1);
    assertThat(monitor.end(transfer)).isFalse();
    assertThat(monitor.transfers(0)).isZero();
    assertThat(monitor.transfers(1)).isEqualTo(1);
    monitor.close(PATIENCE);
  }

  @Test
  void doesNotTakeAnOperationForLateThatBeganWhileItWasLooking() {
    AtomicLong time = new AtomicLong();
    AtomicBoolean isHeld = new AtomicBoolean();
    List<VolumeOperation> operations = new ArrayList<>();
    List<HealthMonitor> monitors = new ArrayList<>();
    LongSupplier heldAfterRun =
        () -> {
          long now = time.get();
          if (isHeld.getAndSet(false)) {
            time.addAndGet(TIMEOUT_NANOS);
            monitors.getFirst().begin(operations.get(1), 1);
          }
          return now;
        };
    List<Volume> volumes = List.of(new Volume("first", () -> {}), new Volume("second", () -> {}));
    Rules strict = new Rules(Long.MAX_VALUE / 4, TIMEOUT_NANOS, 1, 1);
    HealthMonitor monitor =
        new HealthMonitor(
            "Test",
            volumes,
            strict,
            StoreMetrics.NONE,
            heldAfterRun,
            down::add,
            (thread, error) -> {});
    monitors.add(monitor);
    operations.add(monitor.newOperation(VolumeOperation.Kind.TRANSFER));
    operations.add(monitor.newOperation(VolumeOperation.Kind.TRANSFER));
    monitor.begin(operations.getFirst(), 0);
    isHeld.set(true);
    monitor.findLateOperations();
    monitor.findLateOperations();
    assertThat(down).containsExactly(0);
    time.addAndGet(TIMEOUT_NANOS);
    monitor.findLateOperations();
    assertThat(down).containsExactly(0, 1);
    monitor.close(PATIENCE);
  }

  @Test
  void takesALateProbeForFailedAndTheNextOneDecides() throws Exception {
    Semaphore begun = new Semaphore(0);
    Semaphore ends = new Semaphore(0);
    HealthMonitor monitor =
        monitor(
            RARELY,
            () -> {
              begun.release();
              ends.acquireUninterruptibly();
            });
    monitor.failed(0, new StoreException("first"));
    monitor.failed(0, new StoreException("second"));
    Thread prober = Thread.ofPlatform().start(() -> monitor.probe(0));
    begun.acquire();
    assertThat(monitor.state(0)).isEqualTo(State.HALF_OPEN);
    monitor.findLateOperations();
    clock.addAndGet(TIMEOUT_NANOS);
    monitor.findLateOperations();
    assertThat(monitor.state(0)).isEqualTo(State.OPEN);
    assertThat(monitor.probe(0)).as("no second one beside it").isFalse();
    ends.release();
    prober.join();
    assertThat(monitor.state(0)).as("it was too late").isEqualTo(State.OPEN);
    ends.release();
    assertThat(monitor.probe(0)).isTrue();
    assertThat(monitor.state(0)).isEqualTo(State.CLOSED);
    monitor.close(PATIENCE);
  }

  @Test
  void findsAnIdleVolumeFailingAndWellAgainByItself() throws Exception {
    AtomicBoolean failing = new AtomicBoolean(true);
    Semaphore probes = new Semaphore(0);
    CountDownLatch isDown = new CountDownLatch(1);
    Runnable probe =
        () -> {
          probes.release();
          if (failing.get()) {
            throw new StoreException("failing");
          }
        };
    Rules often = new Rules(1_000_000, TIMEOUT_NANOS, 8, 2);
    HealthMonitor monitor =
        new HealthMonitor(
            "Test",
            List.of(new Volume("volume", probe)),
            often,
            StoreMetrics.NONE,
            System::nanoTime,
            volume -> isDown.countDown(),
            (thread, error) -> {});
    monitor.start();
    isDown.await();
    assertThat(monitor.refusal(0)).isNotNull();
    failing.set(false);
    probes.drainPermits();
    // The first may have begun while it was failing; the third begins after the second has ended.
    probes.acquire(3);
    assertThat(monitor.refusal(0)).isNull();
    assertThat(monitor.close(PATIENCE)).isTrue();
  }

  @Test
  void findsAHangingOperationByItself() throws Exception {
    CountDownLatch isDown = new CountDownLatch(1);
    HealthMonitor monitor =
        new HealthMonitor(
            "Test",
            List.of(new Volume("volume", () -> {})),
            new Rules(Long.MAX_VALUE / 4, 4_000_000, 1, 1),
            StoreMetrics.NONE,
            System::nanoTime,
            volume -> isDown.countDown(),
            (thread, error) -> {});
    VolumeOperation hanging = monitor.newOperation(VolumeOperation.Kind.TRANSFER);
    monitor.begin(hanging, 0);
    isDown.await();
    assertThat(monitor.refusal(0)).hasMessageContaining("0.004 s");
    assertThat(monitor.close(PATIENCE)).isTrue();
  }

  @Test
  void closesThoughAProbeHangs() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    Semaphore ends = new Semaphore(0);
    HealthMonitor monitor =
        monitor(
            new Rules(1_000_000, TIMEOUT_NANOS, 8, 2),
            () -> {
              begun.countDown();
              ends.acquireUninterruptibly();
            });
    monitor.start();
    begun.await();
    assertThat(monitor.close(Duration.ofMillis(10))).isFalse();
    ends.release();
    assertThat(monitor.close(PATIENCE)).isTrue();
    assertThat(ends.tryAcquire()).as("no further probe took a permit").isFalse();
  }

  @Test
  void outlivesAProbeThatThrowsAnError() {
    AtomicBoolean broken = new AtomicBoolean(true);
    HealthMonitor monitor =
        monitor(
            new Rules(Long.MAX_VALUE / 4, TIMEOUT_NANOS, 1, 1),
            () -> {
              if (broken.get()) {
                throw new LinkageError("broken");
              }
            });
    assertThat(monitor.probe(0)).isTrue();
    assertThat(monitor.refusal(0)).hasMessageContaining("LinkageError");
    broken.set(false);
    monitor.probe(0);
    assertThat(monitor.refusal(0)).isNull();
  }
}
