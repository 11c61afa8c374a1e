package ucm.store.file.health;

import java.time.Duration;
import java.util.BitSet;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.StoreKind;

/**
 * The threads of background work, one for each piece of it, named by role and directory. There are few
 * pieces: in each directory one probe, scan, sweep and round of the collector at a time.
 *
 * <p>A caller that has work done on several directories waits for each until it is done, its breaker
 * opens, or the file system has not answered for some time; then the thread is left to end by itself, and
 * its directory left out for as long as it is held. Thread-safe.
 */
public final class DirectoryExecutors implements FolderExecutor, AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryExecutors.class);
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long KEPT_IDLE_SECONDS = 10;
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  final StoreKind kind;
  final DirectoryHealth health;
  private final LongSupplier clock;
  private final long patienceNanos;
  private final OwnThreads own;
  private final ThreadPoolExecutor threads;
  // When the work on each directory last got an answer.
  private final AtomicLongArray steps;
  // The last work on each directory that a caller of forEach waited for.
  private final AtomicReferenceArray<Future<?>> last;

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
    last = new AtomicReferenceArray<>(directories);
    own = kind.threads("background");
    threads =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            KEPT_IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            own,
            new ThreadPoolExecutor.DiscardPolicy());
  }

  /**
   * Begins with some work at once, on a thread of its own; does nothing once this is closed.
   *
   * @param role names the thread meanwhile: {@code ucm-<store>-<role>-<number>}
   */
  public void execute(String role, int number, Runnable work) {
    threads.execute(
        () -> {
          Thread.currentThread().setName(kind.thread(role, number));
          work.run();
        });
  }

  @Override
  public BitSet all() {
    BitSet all = new BitSet();
    all.set(0, last.length());
    return all;
  }

  @Override
  public void step(int directory) {
    steps.set(directory, clock.getAsLong());
  }

  @Override
  public BitSet forEach(BitSet which, IntConsumer action) {
    Map<Integer, Future<Boolean>> begun = new TreeMap<>();
    for (int i = which.nextSetBit(0); i >= 0; i = which.nextSetBit(i + 1)) {
      Future<?> before = last.get(i);
      if ((before == null || before.isDone())
          && health.refusal(i) == null
          && !threads.isShutdown()) {
        begun.put(i, begin(i, action));
      }
    }
    Map<Integer, Future<Boolean>> awaited = new TreeMap<>(begun);
    try {
      while (!awaited.isEmpty()) {
        await(awaited.values().iterator().next());
        awaited
            .entrySet()
            .removeIf(entry -> entry.getValue().isDone() || isGivenUp(entry.getKey()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    BitSet done = new BitSet();
    begun.forEach((directory, task) -> done.set(directory, wentWell(task)));
    return done;
  }

  private Future<Boolean> begin(int directory, IntConsumer action) {
    step(directory);
    FutureTask<Boolean> task = new FutureTask<>(() -> isDone(directory, action));
    last.set(directory, task);
    execute("directory", directory, task);
    return task;
  }

  private boolean isDone(int directory, IntConsumer action) {
    try {
      action.accept(directory);
      return true;
    } catch (RuntimeException e) {
      LOG.warn("{} cannot manage the space of storage_backends: {}", kind.name(), e.getMessage());
      health.failedInBackground(directory, e);
    } catch (Error e) {
      LOG.error("{}: the work on a directory of storage_backends broke", kind.name(), e);
      health.failedInBackground(
          directory, new StoreException("the work on the directory broke: " + e, e));
    }
    return false;
  }

  private void await(Future<Boolean> task) throws InterruptedException {
    try {
      task.get(Math.min(LONGEST_WAIT_NANOS, patienceNanos), TimeUnit.NANOSECONDS);
    } catch (TimeoutException | ExecutionException _) {
      // The caller asks whether it is done.
    }
  }

  private static boolean wentWell(Future<Boolean> task) {
    return task.state() == Future.State.SUCCESS && task.resultNow();
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
                + DirectoryHealth.seconds(patienceNanos)
                + " s"));
    return true;
  }

  /** Begins nothing more, and ends the threads; one that the file system holds is left to end by itself. */
  @Override
  public void close() {
    threads.shutdown();
    if (!own.join(LONGEST_CLOSE)) {
      LOG.warn("{}: a probe or the collector still waits for the file system", kind.name());
    }
  }
}
