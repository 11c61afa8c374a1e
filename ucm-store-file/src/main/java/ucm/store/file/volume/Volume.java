package ucm.store.file.volume;

import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.lease.CollectorLease;
import ucm.store.file.lease.WriterLease;

/**
 * A directory of {@code storage_backends}, which may fail or hang by itself. Its {@link Breaker} says whether it may
 * be used. It is fed by what the store reports of its own work, by operations that take longer than the timeout (while
 * they do), and by probes at intervals. Thread-safe.
 */
public final class Volume extends Breaker {

  private static final Logger LOG = LoggerFactory.getLogger(Volume.class);
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** Its place in {@code storage_backends}. */
  public final int number;

  /** Its path. */
  public final String directory;

  /** What its file system has left. */
  public final FreeSpace free;

  /** What tells others of the files that this store writes there. */
  public final WriterLease lease;

  /** Whether this process removes cold blocks there. */
  public final CollectorLease collecting;

  private final Volumes all;
  private final Runnable probe;
  private final Map<String, Job> jobs = new ConcurrentHashMap<>();
  // When the background work in it last got an answer.
  private volatile long steppedNanos;
  // The last work that a caller of Volumes.forEach waited for.
  private volatile @Nullable Future<Boolean> last;

  Volume(
      Volumes all,
      FileOperations files,
      BlockPaths paths,
      int number,
      Runnable probe,
      Counters counters) {
    super(all.kind.name(), paths.directories().get(number), all.rules, all.clock, counters);
    this.all = all;
    this.number = number;
    this.directory = paths.directories().get(number);
    this.free = new FreeSpace(new File(directory)::getUsableSpace, clock);
    this.lease = new WriterLease(files, paths, number);
    this.collecting = new CollectorLease(files, paths, number);
    this.probe = probe;
  }

  @Override
  protected void tryOut() {
    probe.run();
  }

  @Override
  protected void opened() {
    all.onDown.accept(this);
  }

  @Override
  protected void closed() {
    jobs.values().forEach(Job::begin);
    all.onUp.accept(this);
  }

  /** Whether it must not be used now. Hot path. */
  public boolean isDown() {
    return refusal() != null;
  }

  /**
   * A worker begins with shards, or goes on with them after a {@link Volumes#pause}. To be called before it
   * asks whether this is down: when it goes down, the workers here are counted.
   */
  public void enter() {
    all.beginOperation(this, true);
  }

  /**
   * A worker is done.
   *
   * @param tried whether the file system was used
   * @param fault what it failed with, or null
   */
  public void leave(boolean tried, @Nullable RuntimeException fault) {
    // What took too long has been counted: its result is no news.
    if (!all.endOperation() || !tried) {
      return;
    }
    if (fault == null) {
      succeeded();
    } else {
      fault(fault);
    }
  }

  /**
   * The calling thread begins to look up a block, and is done with the one before.
   *
   * @return false when this is down, and the block counts as absent
   */
  public boolean beginLookup() {
    if (hides()) {
      return false;
    }
    all.beginOperation(this, false);
    return true;
  }

  /** Whether a block must be called absent, as this is down. */
  public boolean hides() {
    boolean hidden = isDown();
    if (hidden) {
      all.lookupMisses.increment();
    }
    return hidden;
  }

  /**
   * The file system failed. A look-up that went well is not reported: the kernel answers from memory about
   * files that cannot be read any more.
   */
  public void fault(RuntimeException fault) {
    if (VolumeFaults.isFault(fault)) {
      failed(fault);
    }
  }

  /** Work in the background failed, or has waited for too long. */
  public void failedInBackground(RuntimeException fault) {
    if (!(fault instanceof FileException) || VolumeFaults.isFault(fault)) {
      failed(fault);
    }
  }

  /**
   * Begins with some work at once, on a thread of its own; does nothing once the store has closed.
   *
   * @param role names the thread meanwhile: {@code ucm-<store>-<role>-<number>}
   */
  public void execute(String role, Runnable work) {
    all.threads.execute(
        () -> {
          Thread.currentThread().setName(all.kind.thread(role, number));
          work.run();
        });
  }

  /** Begins with what {@link Volumes#beginJob} says. */
  void beginJob(String role, String what, Predicate<Volume> work) {
    Job job = new Job(role, what, work);
    jobs.put(role, job);
    job.begin();
  }

  /** Waits until a job is not under way. */
  void awaitJob(String role) throws InterruptedException {
    Job job = jobs.get(role);
    if (job != null) {
      job.await();
    }
  }

  /**
   * Something that is to be done once. Where it fails, or the breaker is open, it is done again when the
   * directory is found to work again.
   */
  private final class Job {

    private final String role;
    private final String what;
    private final Predicate<Volume> work;
    // Guarded by this.
    private boolean isRunning;
    private boolean isDone;
    private boolean again;

    Job(String role, String what, Predicate<Volume> work) {
      this.role = role;
      this.what = what;
      this.work = work;
    }

    synchronized void begin() {
      again = isRunning;
      if (!isRunning && !isDone && !all.isClosing()) {
        isRunning = true;
        execute(role, this::run);
      }
    }

    private void run() {
      boolean done = false;
      try {
        done = !isDown() && work.test(Volume.this);
      } catch (RuntimeException e) {
        LOG.warn(
            "{}: {} failed, and is made up for later: {}", all.kind.name(), what, e.getMessage());
        failedInBackground(e);
      } finally {
        ended(done);
      }
    }

    private synchronized void ended(boolean done) {
      isRunning = false;
      isDone = done;
      if (again) {
        begin();
      }
      notifyAll();
    }

    synchronized void await() throws InterruptedException {
      while (isRunning) {
        wait();
      }
    }
  }

  /** Work that a caller waits for goes on: an answer has come. */
  public void step() {
    steppedNanos = clock.getAsLong();
  }

  /** Begins with work that a caller waits for; null when this is down, or held by such work. */
  @Nullable Future<Boolean> beginWork(Consumer<Volume> action) {
    Future<Boolean> before = last;
    if ((before != null && !before.isDone()) || isDown() || all.threads.isShutdown()) {
      return null;
    }
    step();
    FutureTask<Boolean> task = new FutureTask<>(() -> isDone(action));
    last = task;
    execute("directory", task);
    return task;
  }

  private boolean isDone(Consumer<Volume> action) {
    try {
      action.accept(this);
      return true;
    } catch (RuntimeException e) {
      LOG.warn(
          "{} cannot manage the space of storage_backends: {}", all.kind.name(), e.getMessage());
      failedInBackground(e);
    } catch (Error e) {
      LOG.error("{}: the work on a directory of storage_backends broke", all.kind.name(), e);
      failedInBackground(new StoreException("the work on the directory broke: " + e, e));
    }
    return false;
  }

  /** Waits for work until it ends or is given up; returns whether it is done. */
  boolean await(Future<Boolean> work) {
    Standstill standstill = new Standstill(all.patienceNanos / 2, System::nanoTime);
    try {
      while (!work.isDone() && !isGivenUp()) {
        try {
          work.get(Math.min(LONGEST_WAIT_NANOS, all.patienceNanos / 4), TimeUnit.NANOSECONDS);
        } catch (TimeoutException | ExecutionException _) {
          // Asked above whether it is done.
        }
        if (standstill.hasBeen()) {
          step();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return work.state() == Future.State.SUCCESS && work.resultNow();
  }

  private boolean isGivenUp() {
    if (isDown()) {
      return true;
    }
    if (clock.getAsLong() - steppedNanos < all.patienceNanos) {
      return false;
    }
    failedInBackground(
        new StoreException(
            "the file system did not answer the collector for "
                + seconds(all.patienceNanos)
                + " s"));
    return true;
  }
}
