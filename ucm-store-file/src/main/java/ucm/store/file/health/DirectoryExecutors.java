package ucm.store.file.health;

import java.time.Duration;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.store.file.config.StoreKind;

/**
 * A thread for each directory. A caller that has work done on all of them waits for each until it is done, its
 * breaker opens, or the file system has not answered for some time; then the thread is left to end by
 * itself, and its directory left out for as long as it is held. One caller at a time.
 */
public final class DirectoryExecutors implements FolderExecutor, AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryExecutors.class);
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final StoreKind kind;
  private final DirectoryHealth health;
  private final LongSupplier clock;
  private final long patienceNanos;
  private final AtomicLongArray steps;
  private final BitSet all = new BitSet();

  // Guarded by this.
  private final @Nullable IntConsumer[] work;
  private final boolean[] failed;
  private final @Nullable Thread[] threads;
  private boolean closed;

  /**
   * Starts no thread yet.
   *
   * @param patienceNanos how long the file system may take for one answer
   */
  public DirectoryExecutors(
      StoreKind kind,
      int directories,
      DirectoryHealth health,
      LongSupplier clock,
      long patienceNanos) {
    this.kind = kind;
    this.health = health;
    this.clock = clock;
    this.patienceNanos = patienceNanos;
    steps = new AtomicLongArray(directories);
    all.set(0, directories);
    work = new IntConsumer[directories];
    failed = new boolean[directories];
    threads = new Thread[directories];
  }

  @Override
  public BitSet all() {
    return (BitSet) all.clone();
  }

  @Override
  public void step(int directory) {
    steps.set(directory, clock.getAsLong());
  }

  @Override
  public synchronized BitSet forEach(BitSet which, IntConsumer action) {
    BitSet waiting = new BitSet();
    for (int i = which.nextSetBit(0); i >= 0 && !closed; i = which.nextSetBit(i + 1)) {
      if (work[i] == null && health.refusal(i) == null) {
        waiting.set(i);
        begin(i, action);
      }
    }
    BitSet done = new BitSet();
    boolean interrupted = false;
    while (!waiting.isEmpty() && !interrupted) {
      for (int i = waiting.nextSetBit(0); i >= 0; i = waiting.nextSetBit(i + 1)) {
        if (work[i] == null) {
          waiting.clear(i);
          done.set(i, !failed[i]);
        } else if (isGivenUp(i)) {
          waiting.clear(i);
        }
      }
      interrupted = !waiting.isEmpty() && !awaitChange();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return done;
  }

  private void begin(int directory, IntConsumer action) {
    work[directory] = action;
    failed[directory] = false;
    step(directory);
    if (threads[directory] == null) {
      threads[directory] =
          Thread.ofPlatform()
              .daemon()
              .name(kind.thread("directory", directory))
              .start(() -> serve(directory));
    }
    notifyAll();
  }

  private boolean isGivenUp(int directory) {
    if (health.refusal(directory) != null) {
      return true;
    }
    if (clock.getAsLong() - steps.get(directory) < patienceNanos) {
      return false;
    }
    health.failedInBackground(
        directory,
        new StoreException(
            "the file system did not answer the collector for "
                + TimeUnit.NANOSECONDS.toMillis(patienceNanos) / 1000.0
                + " s"));
    return true;
  }

  /** Waits until something may have changed; false when interrupted. */
  private boolean awaitChange() {
    try {
      TimeUnit.NANOSECONDS.timedWait(this, Math.min(LONGEST_WAIT_NANOS, patienceNanos));
      return true;
    } catch (InterruptedException e) {
      return false;
    }
  }

  private void serve(int directory) {
    IntConsumer action = next(directory);
    while (action != null) {
      boolean wrong = true;
      try {
        action.accept(directory);
        wrong = false;
      } catch (RuntimeException e) {
        LOG.warn("{} cannot manage the space of storage_backends: {}", kind.name(), e.getMessage());
        health.failedInBackground(directory, e);
      } catch (Error e) {
        // The thread must live on: without it the directory would never be collected again.
        LOG.error("{}: the work on a directory of storage_backends broke", kind.name(), e);
        health.failedInBackground(
            directory, new StoreException("the work on the directory broke: " + e, e));
      } finally {
        ended(directory, wrong);
      }
      action = next(directory);
    }
  }

  private synchronized @Nullable IntConsumer next(int directory) {
    try {
      while (work[directory] == null && !closed) {
        wait();
      }
      return work[directory];
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
      return null;
    }
  }

  private synchronized void ended(int directory, boolean wrong) {
    work[directory] = null;
    failed[directory] = wrong;
    notifyAll();
  }

  /** Ends the threads; one that the file system holds is left to end by itself. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    long deadline = System.nanoTime() + LONGEST_CLOSE.toNanos();
    try {
      for (int i = 0; i < work.length; i++) {
        Thread thread = thread(i);
        long left = Math.max(1, deadline - System.nanoTime());
        if (thread != null && !thread.join(Duration.ofNanos(left))) {
          LOG.warn("{}: the collector still waits for the file system of a directory", kind.name());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized @Nullable Thread thread(int directory) {
    return threads[directory];
  }
}
