package ucm.store.file.health;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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

  private static final Logger LOG = LoggerFactory.getLogger(LateOperations.class);
  private static final int RUNS_PER_TIMEOUT = 4;

  private final String threadName;
  private final Thread.UncaughtExceptionHandler faults;
  private final long timeoutNanos;
  private final LongSupplier clock;
  private final Listener listener;

  // Guarded by itself. Weak, because an operation goes with the thread that owns it.
  private final List<WeakReference<VolumeOperation>> operations = new ArrayList<>();

  // Written under the lock of this; awake is read without it on the hot path.
  private volatile boolean awake;
  private boolean closed;
  private @Nullable Thread thread;

  LateOperations(
      String threadName,
      Thread.UncaughtExceptionHandler faults,
      long timeoutNanos,
      LongSupplier clock,
      Listener listener) {
    this.threadName = threadName;
    this.faults = faults;
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
      wake();
    }
  }

  private synchronized void wake() {
    if (awake || closed) {
      return;
    }
    awake = true;
    if (thread == null) {
      thread =
          Thread.ofPlatform()
              .daemon()
              .name(threadName)
              .uncaughtExceptionHandler(faults)
              .start(this::run);
    } else {
      notifyAll();
    }
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

  private void run() {
    try {
      while (sleep()) {
        runOrLog();
      }
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
    }
  }

  private void runOrLog() {
    try {
      if (runOnce()) {
        began();
      }
    } catch (RuntimeException e) {
      LOG.error("{} failed to find late operations", threadName, e);
    }
  }

  /** Waits for the time between two runs, once one is needed; false after close. */
  private synchronized boolean sleep() throws InterruptedException {
    while (!awake && !closed) {
      wait();
    }
    long end = System.nanoTime() + timeoutNanos / RUNS_PER_TIMEOUT;
    while (!closed) {
      long left = end - System.nanoTime();
      if (left <= 0) {
        // What begins from now on wakes this thread by itself.
        awake = false;
        return true;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return false;
  }

  /** Stops the thread. */
  synchronized void stop() {
    closed = true;
    notifyAll();
  }

  /** Waits for the thread; false when it still runs. */
  boolean join(Duration timeout) throws InterruptedException {
    Thread running;
    synchronized (this) {
      running = thread;
    }
    return running == null || running.join(timeout);
  }
}
