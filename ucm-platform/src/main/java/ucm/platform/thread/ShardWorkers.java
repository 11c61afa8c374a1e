package ucm.platform.thread;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.StampedLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.CommonKeys;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * Named threads that work through tasks, each in groups of shards.
 *
 * <p>A task hands in one {@link Batch}; the threads take its groups one by one from a counter, so that
 * nothing is queued or allocated per group. All threads work on the batch at the head until its last
 * group is taken, then on the next one. A thread that takes a group while more are left calls one more.
 * A thread that waits for a batch may take groups of it, too: {@link Remainder}.
 *
 * <p>One thread per processor works while groups only compute and copy: more would push each other out of
 * the caches. Idle ones are called last in, first out, and look around before they sleep: that is
 * {@link ForkJoinPool}'s. Each group that waited for most of its time lets one more thread work, and each of the
 * others takes one back; each tick in which no group ended lets two more work.
 */
public final class ShardWorkers implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(ShardWorkers.class);
  // Longer than most tasks take: each tick wakes a thread twice, beside those that move bytes.
  private static final Executor TICKS =
      CompletableFuture.delayedExecutor(5, TimeUnit.MILLISECONDS, Runnable::run);

  /** The groups of one task, or of the part of it that goes one way. */
  public interface Batch {

    /** How many groups. */
    int size();

    /**
     * Moves one group. Called once per index, by any worker or thread
     * that waits, several at a time. Must not throw.
     *
     * @param index from 0 to {@link #size()} - 1
     */
    void run(int index);
  }

  /** What is left of a batch; a thread that waits for it may run some of its groups itself. */
  public final class Remainder {

    private final Batch batch;
    private final boolean isPart;
    private final int size;
    private final AtomicInteger next = new AtomicInteger();

    private Remainder(Batch batch, boolean isPart) {
      this.batch = batch;
      this.isPart = isPart;
      this.size = batch.size();
    }

    /**
     * Runs a group on this thread.
     *
     * @return false when none is left to be begun
     */
    public boolean runOne() {
      long stamp = outsiders.tryReadLock();
      if (stamp == 0) {
        return false;
      }
      try {
        return runNext(this);
      } finally {
        outsiders.unlockRead(stamp);
      }
    }
  }

  private final String role;
  private final int maxThreads;
  private final int maxWaiting;
  private final int processors;
  private final Runnable work = this::work;
  private final OwnThreads own;
  private final ForkJoinPool threads;
  private final ThreadLocal<WaitMeter> meters = ThreadLocal.withInitial(WaitMeter::new);
  private volatile Thread.@Nullable UncaughtExceptionHandler faults;

  // A batch leaves when its last group is taken. Added to under the lock of this.
  private final Queue<Remainder> batches = new ConcurrentLinkedQueue<>();
  private final AtomicInteger waitingBatches = new AtomicInteger();
  private final AtomicLong endedGroups = new AtomicLong();
  // Threads that work or are called to; how many may, beside those in place of others.
  private final AtomicInteger working = new AtomicInteger();
  private final AtomicInteger wanted;
  private volatile int compensating;
  private final AtomicBoolean isTicking = new AtomicBoolean();
  // Held to read by threads of others while they run a group.
  private final StampedLock outsiders = new StampedLock();
  private volatile boolean closed;

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<role>-<n>}
   * @param maxThreads how many threads at the most
   * @param maxWaiting how many batches may wait for a worker: {@code waiting_queue_depth}
   * @param affinity where they run
   */
  public ShardWorkers(String role, int maxThreads, int maxWaiting, CpuAffinity affinity) {
    this.role = role;
    this.maxThreads = maxThreads;
    this.maxWaiting = maxWaiting;
    this.processors = Math.min(affinity.processors(), maxThreads);
    this.wanted = new AtomicInteger(processors);
    this.own = new OwnThreads("ucm-" + role + "-", affinity::applyToThisThread, this::threadEnds);
    this.threads = own.pool(maxThreads);
  }

  /**
   * Starts the threads that work at first, so that the first task does not wait for that. It is a batch, as the
   * classes and threads that move one take a millisecond of that task, too; with one group more than
   * threads, for which they wait as for others.
   *
   * @param first has each of them make what it needs
   */
  public void startThreads(Runnable first) {
    // Has the JDK start the thread that ticks.
    TICKS.execute(() -> {});
    submitPart(
        new Batch() {
          @Override
          public int size() {
            return processors + 1;
          }

          @Override
          public void run(int index) {
            first.run();
          }
        });
  }

  /** Sets the handler of threads that end by an error. To be called before anything is submitted. */
  public void whenThreadEnds(Thread.UncaughtExceptionHandler handler) {
    faults = handler;
  }

  private void threadEnds(Thread thread, Throwable fault) {
    Thread.UncaughtExceptionHandler handler = faults;
    if (handler == null) {
      LOG.error("{}: thread {} failed", role, thread.getName(), fault);
    } else {
      handler.uncaughtException(thread, fault);
    }
  }

  /**
   * Takes the groups of a task. Never blocks.
   *
   * @return what a thread that waits for the batch may take part in
   * @throws QueueFullException when too many wait; nothing of the batch will run
   * @throws StoreClosedException after {@link #close}
   */
  public Remainder submit(Batch batch) {
    return submit(new Remainder(batch, false));
  }

  /** The same for a part of a task that was let in elsewhere: it counts for no bound. */
  public void submitPart(Batch batch) {
    Remainder _ = submit(new Remainder(batch, true));
  }

  private Remainder submit(Remainder remainder) {
    if (remainder.size == 0) {
      return remainder;
    }
    synchronized (this) {
      if (closed) {
        throw new StoreClosedException(role);
      }
      int waiting = waitingBatches.get();
      if (!remainder.isPart && waiting >= maxWaiting) {
        throw new QueueFullException(
            role + " tasks", waiting, CommonKeys.WAITING_QUEUE_DEPTH.name());
      }
      waitingBatches.addAndGet(remainder.isPart ? 0 : 1);
      batches.add(remainder);
    }
    callOne();
    return remainder;
  }

  /** How many threads may exist, compensating ones aside. */
  public int maxThreads() {
    return maxThreads;
  }

  /**
   * Lets more threads exist for as long as some are held by a device that hangs, so that groups of
   * others are not held up with them. Threads that were started stay when fewer are asked for.
   *
   * @param count how many more than the usual number
   */
  public void compensate(int count) {
    compensating = count;
    threads.setParallelism(Math.min(maxThreads + count, OwnThreads.MOST_THREADS));
    callOne();
  }

  /**
   * Stops taking batches, lets the threads run what was accepted, and waits for their end, and for that of
   * groups which others run. Must not be called by one of the threads, nor from a group.
   *
   * @param timeout how long to wait at the most
   * @return false when some thread still runs after the timeout; an interrupt of the caller is kept for later
   */
  public boolean close(Duration timeout) {
    synchronized (this) {
      closed = true;
    }
    shutDownIfOver();
    long end = System.nanoTime() + timeout.toNanos();
    boolean ended = ThreadEnd.await(timeout, threads);
    ended &= own.join(Duration.ofNanos(end - System.nanoTime()));
    // Every group has been taken, so no other begins.
    return ended
        && ThreadEnd.await(Duration.ofNanos(end - System.nanoTime()), this::awaitOutsiders);
  }

  private boolean awaitOutsiders(Duration left) throws InterruptedException {
    long stamp = outsiders.tryWriteLock(left.toNanos(), TimeUnit.NANOSECONDS);
    if (stamp != 0) {
      outsiders.unlockWrite(stamp);
    }
    return stamp != 0;
  }

  /** Closes and waits for as long as it takes. */
  @Override
  public void close() {
    close(Duration.ofDays(1));
  }

  private void shutDownIfOver() {
    if (closed && batches.isEmpty()) {
      threads.shutdown();
    }
  }

  /** How many threads may work now. */
  private int limit() {
    return Math.min(wanted.get(), maxThreads) + compensating;
  }

  /** Calls a thread to work, when one more may and there is something left. */
  private void callOne() {
    if (batches.isEmpty()) {
      return;
    }
    int now = working.get();
    if (now < limit() && working.compareAndSet(now, now + 1)) {
      try {
        threads.execute(work);
      } catch (RejectedExecutionException e) {
        // Others took what was left, and the last of it has shut the pool down.
        working.decrementAndGet();
      }
    } else if (now < maxThreads && !isTicking.get() && isTicking.compareAndSet(false, true)) {
      long ended = endedGroups.get();
      TICKS.execute(() -> tick(ended));
    }
  }

  private void tick(long endedBefore) {
    isTicking.set(false);
    if (endedGroups.get() == endedBefore) {
      want(2);
    }
    callOne();
  }

  private void want(int more) {
    int now = wanted.get();
    int next = Math.clamp((long) now + more, processors, maxThreads);
    if (next != now) {
      wanted.compareAndSet(now, next);
    }
  }

  private void work() {
    try {
      WaitMeter meter = meters.get();
      var _ = meter.hasWaited();
      // Hot path: no lock while the batch at the head lasts.
      Remainder remainder = batches.peek();
      while (remainder != null && working.get() <= limit()) {
        if (runNext(remainder) && processors < maxThreads) {
          want(meter.hasWaited() ? 1 : -1);
        }
        remainder = batches.peek();
      }
    } catch (Throwable t) {
      // The executor would keep it to itself.
      threadEnds(Thread.currentThread(), t);
    } finally {
      working.decrementAndGet();
      // What came after the last look at the queue may have counted on this thread.
      callOne();
    }
  }

  /** Takes a group and runs it; false when there was none left. */
  private boolean runNext(Remainder remainder) {
    int group = remainder.next.getAndIncrement();
    if (group >= remainder.size) {
      return false;
    }
    if (group == remainder.size - 1) {
      batches.remove(remainder);
      waitingBatches.addAndGet(remainder.isPart ? 0 : -1);
      shutDownIfOver();
    }
    callOne();
    try {
      remainder.batch.run(group);
    } catch (Throwable t) {
      // The batch broke its contract; the thread must live on for the others.
      LOG.error("{}: group {} of a batch threw", role, group, t);
    }
    endedGroups.incrementAndGet();
    return true;
  }

  /**
   * Tells, by {@code getrusage}, whether the calling thread waits for a device for most of its time. A
   * thread that others pushed off its processor does not: it has not given it up by itself. One object for each
   * thread.
   */
  private static final class WaitMeter {

    private static final long NANOS_OF_SECOND = 1_000_000_000L;
    private static final long NANOS_OF_MICRO = 1_000L;

    private final MemorySegment usage = Arena.ofAuto().allocate(Libc.RUSAGE_BYTES, Long.BYTES);
    private long start;
    private long processorNanos;
    private long waits;

    /** Whether the thread has waited for more than half of the time since the last call. */
    boolean hasWaited() {
      if (Libc.threadUsage(usage) < 0) {
        throw new FileException("getrusage", "this thread", Native.getLastError());
      }
      long startBefore = start;
      long processorNanosBefore = processorNanos;
      long waitsBefore = waits;
      start = System.nanoTime();
      processorNanos = nanosAt(Libc.RUSAGE_USER_AT) + nanosAt(Libc.RUSAGE_SYSTEM_AT);
      waits = usage.get(ValueLayout.JAVA_LONG, Libc.RUSAGE_WAITS_AT);
      return waits > waitsBefore
          && 2 * (processorNanos - processorNanosBefore) < start - startBefore;
    }

    private long nanosAt(int at) {
      return usage.get(ValueLayout.JAVA_LONG, at) * NANOS_OF_SECOND
          + usage.get(ValueLayout.JAVA_LONG, at + Long.BYTES) * NANOS_OF_MICRO;
    }
  }
}
