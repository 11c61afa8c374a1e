package ucm.store.file.lookup;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;

/**
 * Threads that look blocks up on disk for callers that wait. They are started when there is something
 * to do and none is free, up to a bound, and sleep when there is nothing. For each that hangs in a
 * directory that is down, another one may be started, so that the other directories keep theirs; one too
 * many ends when it has nothing to do. The batches in the queue are as many as there are callers waiting.
 * Thread-safe.
 */
final class LookupThreads implements AutoCloseable {

  /** Looks blocks up. */
  @FunctionalInterface
  interface Asker {

    /** Looks up what it can take of a batch, on one of the threads; must not throw. */
    void ask(LookupBatch batch, Seat seat);
  }

  /** What belongs to one of the threads. */
  static final class Seat {

    static final int NOWHERE = -1;

    final NativePath path = new NativePath();

    /** The directory that the thread asks. */
    volatile int directory = NOWHERE;

    private @Nullable Thread thread;
  }

  private static final Logger LOG = LoggerFactory.getLogger(LookupThreads.class);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);
  // A batch that is not over by then may be held by a thread that hangs: others are called to help.
  private static final long HANGING_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final StoreKind kind;
  private final int most;
  private final int directories;
  private final IntPredicate isDown;
  private final long timeoutNanos;
  private final Asker asker;

  // Guarded by this.
  private final List<LookupBatch> batches = new ArrayList<>();
  private final List<Seat> seats = new ArrayList<>();
  private int started;
  // Threads that sleep and were not called; threads that were called and still sleep.
  private int idle;
  private int called;
  private boolean closed;

  // When a thread last got on.
  private volatile long movedNanos;

  /**
   * Starts no thread yet.
   *
   * @param most threads at the most, not counting those that a directory holds which is down
   * @param directories how many directories there are; so many times {@code most} threads are never passed
   * @param isDown whether a directory is not to be used
   * @param timeoutNanos how long all of them may hang before callers stop waiting for them
   */
  LookupThreads(
      StoreKind kind,
      int most,
      int directories,
      IntPredicate isDown,
      long timeoutNanos,
      Asker asker) {
    this.kind = kind;
    this.most = most;
    this.directories = directories;
    this.isDown = isDown;
    this.timeoutNanos = timeoutNanos;
    this.asker = asker;
  }

  /**
   * Looks up what a batch asks for.
   *
   * @param wanted how many threads to begin with
   * @param nanos how long to wait at the most
   * @return whether all answers that matter came in time; not when the thread was interrupted, or this
   *     was closed
   */
  boolean run(LookupBatch batch, int wanted, long nanos) {
    if (!begin(batch, wanted)) {
      return false;
    }
    long deadline = System.nanoTime() + nanos;
    try {
      long left = nanos;
      while (left > 0 && !batch.await(Math.min(left, HANGING_NANOS))) {
        help(batch);
        left = deadline - System.nanoTime();
      }
    } catch (InterruptedException e) {
      // What is not known by now is absent; the caller finds its interrupt where it left it.
      Thread.currentThread().interrupt();
    } finally {
      end(batch);
    }
    return batch.isAnswered();
  }

  private synchronized boolean begin(LookupBatch batch, int wanted) {
    if (closed || isStuck()) {
      return false;
    }
    batches.add(batch);
    call(batch, wanted);
    return true;
  }

  private synchronized void end(LookupBatch batch) {
    batches.remove(batch);
    batch.stop();
  }

  private synchronized void help(LookupBatch batch) {
    call(batch, batch.called + batch.left());
  }

  /** A thread gets on with a batch, and would share what is left with others. */
  void getsOn(LookupBatch batch, int wanted) {
    movedNanos = System.nanoTime();
    if (batch.called < wanted) {
      synchronized (this) {
        call(batch, wanted);
      }
    }
  }

  /**
   * A directory must not be used any more: no caller waits for it, and other threads take the place of
   * the held ones.
   */
  synchronized void giveUp(LookupBatch.Hidden hidden) {
    for (LookupBatch batch : batches) {
      batch.giveUp(hidden);
      call(batch, batch.called + batch.left());
    }
  }

  private boolean isStuck() {
    return idle + called == 0
        && seats.size() >= limit()
        && System.nanoTime() - movedNanos >= timeoutNanos;
  }

  private int limit() {
    int limit = most;
    for (int i = 0; i < seats.size() && limit < most * directories; i++) {
      int directory = seats.get(i).directory;
      if (directory != Seat.NOWHERE && isDown.test(directory)) {
        limit++;
      }
    }
    return limit;
  }

  private void call(LookupBatch batch, int wanted) {
    int calls = batch.called;
    while (calls < wanted && callOne()) {
      calls++;
    }
    batch.called = calls;
  }

  private boolean callOne() {
    if (idle > 0) {
      idle--;
      called++;
      notify();
      return true;
    }
    if (closed || (seats.size() >= most && seats.size() >= limit())) {
      return false;
    }
    Seat seat = new Seat();
    seats.add(seat);
    movedNanos = System.nanoTime();
    seat.thread = kind.newThread("lookup", started++).start(() -> work(seat));
    return true;
  }

  private void work(Seat seat) {
    for (LookupBatch batch = next(seat); batch != null; batch = next(seat)) {
      asker.ask(batch, seat);
    }
  }

  private synchronized @Nullable LookupBatch next(Seat seat) {
    movedNanos = System.nanoTime();
    while (!closed) {
      if (seats.size() > most && seats.size() > limit()) {
        seats.remove(seat);
        return null;
      }
      for (int i = 0; i < batches.size(); i++) {
        if (batches.get(i).mayHaveMore()) {
          return batches.get(i);
        }
      }
      sleep();
    }
    return null;
  }

  private void sleep() {
    boolean interrupted = false;
    idle++;
    while (called == 0 && !closed) {
      try {
        wait();
      } catch (InterruptedException e) {
        // Close does not interrupt these threads.
        interrupted = true;
      }
    }
    if (called > 0) {
      called--;
    }
    movedNanos = System.nanoTime();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends the batches with the answers they have, and joins the threads. */
  @Override
  public void close() {
    List<Seat> running;
    synchronized (this) {
      closed = true;
      batches.forEach(LookupBatch::stop);
      running = List.copyOf(seats);
      notifyAll();
    }
    long deadline = System.nanoTime() + LONGEST_CLOSE.toNanos();
    try {
      for (Seat seat : running) {
        Thread thread = seat.thread;
        if (thread != null
            && !thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())))) {
          LOG.warn("{}: {} still waits for the file system", kind.name(), thread.getName());
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
