package ucm.store.posix;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that look blocks up on disk for callers that wait. They are started when there is something
 * to do and none is free, up to a bound, and sleep when there is nothing. The waves in the queue are
 * as many as there are callers waiting.
 */
final class LookupThreads implements AutoCloseable {

  /** Looks one block up. */
  @FunctionalInterface
  interface Probe {

    /** Whether a block of a wave is present; what it throws is logged, and means no. */
    boolean isPresent(LookupWave wave, int place);
  }

  private static final Logger LOG = LoggerFactory.getLogger(LookupThreads.class);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final int most;
  private final long timeoutNanos;
  private final Probe probe;

  // Guarded by this.
  private final Deque<LookupWave> waves = new ArrayDeque<>();
  private final List<Thread> threads = new ArrayList<>();
  private int idle;
  private boolean closed;

  // When a thread last got on.
  private volatile long movedNanos;

  /**
   * Starts no thread yet.
   *
   * @param most threads at the most
   * @param timeoutNanos how long all of them may hang before nobody waits for them any more
   */
  LookupThreads(int most, long timeoutNanos, Probe probe) {
    this.most = most;
    this.timeoutNanos = timeoutNanos;
    this.probe = probe;
  }

  /**
   * Looks up what a wave asks for.
   *
   * @param nanos how long to wait at the most
   * @return whether all answers that matter came in time
   */
  boolean run(LookupWave wave, long nanos) {
    begin(wave);
    try {
      return wave.await(nanos);
    } finally {
      remove(wave);
    }
  }

  private synchronized void begin(LookupWave wave) {
    if (closed || isStuck()) {
      wave.stop();
      return;
    }
    waves.add(wave);
    long open = -idle;
    for (LookupWave waiting : waves) {
      open += waiting.size();
    }
    for (int i = threads.size(); i < most && open > 0; i++, open--) {
      String name = "ucm-posix-lookup-" + i;
      movedNanos = System.nanoTime();
      threads.add(Thread.ofPlatform().daemon().name(name).start(this::work));
    }
    notifyAll();
  }

  private boolean isStuck() {
    return threads.size() == most && idle == 0 && System.nanoTime() - movedNanos >= timeoutNanos;
  }

  private synchronized void remove(LookupWave wave) {
    waves.remove(wave);
  }

  private void work() {
    for (LookupWave wave = next(); wave != null; wave = next()) {
      for (int place = wave.take(); place >= 0; place = wave.take()) {
        movedNanos = System.nanoTime();
        wave.answer(place, isPresent(wave, place));
      }
      remove(wave);
    }
  }

  private boolean isPresent(LookupWave wave, int place) {
    try {
      return probe.isPresent(wave, place);
    } catch (RuntimeException e) {
      LOG.error("Posix failed to look up a block", e);
      return false;
    }
  }

  private synchronized @Nullable LookupWave next() {
    boolean interrupted = false;
    while (!closed && waves.isEmpty()) {
      idle++;
      try {
        wait();
      } catch (InterruptedException e) {
        // Nobody interrupts these threads to end them.
        interrupted = true;
      } finally {
        idle--;
        movedNanos = System.nanoTime();
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return closed ? null : waves.peek();
  }

  /** Ends the waves with the answers they have, and joins the threads. */
  @Override
  public void close() {
    List<Thread> running;
    synchronized (this) {
      closed = true;
      waves.forEach(LookupWave::stop);
      running = List.copyOf(threads);
      notifyAll();
    }
    long deadline = System.nanoTime() + LONGEST_CLOSE.toNanos();
    try {
      for (Thread thread : running) {
        if (!thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())))) {
          LOG.warn("Posix: {} still waits for the file system", thread.getName());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
