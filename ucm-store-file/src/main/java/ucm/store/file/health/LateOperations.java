package ucm.store.file.health;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Finds operations that take too long, while they do. Its thread checks them a few times per timeout
 * as long as any is under way, and sleeps otherwise; an operation is found between one and one and a
 * half timeouts after it began.
 */
final class LateOperations {

  /** Receives each operation that takes too long, once. */
  interface Listener {
    void late(int volume, boolean isProbe);
  }

  private static final int RUNS_PER_TIMEOUT = 4;

  private final TimeoutScheduler scheduler;
  private final long timeoutNanos;
  private final LongSupplier clock;
  private final Listener listener;

  // Guarded by itself. Weak, because an operation goes with the thread that owns it.
  private final List<WeakReference<VolumeOperation>> operations = new ArrayList<>();

  // Whether the scheduler will check soon; operations that begin need not tell it.
  private volatile boolean awake;

  LateOperations(Thread.Builder thread, long timeoutNanos, LongSupplier clock, Listener listener) {
    this.scheduler = new TimeoutScheduler(thread, this::check);
    this.timeoutNanos = timeoutNanos;
    this.clock = clock;
    this.listener = listener;
  }

  VolumeOperation newOperation(VolumeOperation.Kind kind) {
    VolumeOperation operation = new VolumeOperation(kind);
    synchronized (operations) {
      operations.add(new WeakReference<>(operation));
    }
    return operation;
  }

  /** Makes sure that the thread runs. */
  void began() {
    if (!awake) {
      awake = true;
      scheduler.checkIn(timeoutNanos / RUNS_PER_TIMEOUT);
    }
  }

  private long check() {
    // First: what begins from now on wakes the thread by itself.
    awake = false;
    if (!runOnce()) {
      return Long.MAX_VALUE;
    }
    awake = true;
    return timeoutNanos / RUNS_PER_TIMEOUT;
  }

  /** How many operations of a kind are under way on a volume. */
  int count(VolumeOperation.Kind kind, int volume) {
    int count = 0;
    for (VolumeOperation operation : all()) {
      count += operation.kind == kind && operation.volume() == volume ? 1 : 0;
    }
    return count;
  }

  /**
   * Checks all operations.
   *
   * @return whether any is under way
   */
  boolean runOnce() {
    boolean any = false;
    for (VolumeOperation operation : all()) {
      int volume = lateVolume(operation);
      if (volume >= 0) {
        listener.late(volume, operation.kind == VolumeOperation.Kind.PROBE);
      }
      any |= operation.isUnderWay();
    }
    return any;
  }

  private synchronized int lateVolume(VolumeOperation operation) {
    return operation.lateVolume(clock, timeoutNanos);
  }

  private List<VolumeOperation> all() {
    List<VolumeOperation> all = new ArrayList<>();
    synchronized (operations) {
      Iterator<WeakReference<VolumeOperation>> each = operations.iterator();
      while (each.hasNext()) {
        VolumeOperation operation = each.next().get();
        if (operation == null) {
          each.remove();
        } else {
          all.add(operation);
        }
      }
    }
    return all;
  }

  /** Stops the thread. */
  void stop() {
    scheduler.stop();
  }

  /** Waits for the thread; false when it still runs. */
  boolean join(Duration timeout) throws InterruptedException {
    return scheduler.join(timeout);
  }
}
