package ucm.api;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.InFlightTasks.Settings;
import ucm.api.StoreLife.Threads;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * What stores have in common: their life, the numbers, bounds and deadlines of tasks, what {@code flush}
 * reports, and how to close.
 *
 * <p>A store implements the {@code do...} methods. Unless it overrides {@link #refuseNext} and {@link
 * #takesDeviceMemory}, it is a last stage and moves host memory.
 *
 * <p>Of {@link CommonKeys}, those that the store lists are read here: the layout, {@code device_id},
 * {@code timeout_ms}, {@code waiting_queue_depth} and {@code running_queue_depth}.
 *
 * <p>From {@code doLoad} or {@code doDump} on, the store has the task and ends each shard of it. Where it
 * does so after these have returned, it {@linkplain TransferTask#begin begins} a shard before it moves it:
 * what has not begun at the deadline ends as {@link ShardOutcome#EXPIRED}, on a thread of this class.
 * {@link TransferTask#moveAll} does all of that.
 */
public abstract class AbstractStore implements Store {

  private final String name;
  private final StoreLife life;
  // Held to open and to close, so that a second closing thread waits for the first.
  private final ReentrantLock changing = new ReentrantLock();
  // Those that end before doClose, and those that it ends.
  private final Threads workers;
  private final Threads threads;
  private @Nullable Settings settings;
  private volatile @Nullable InFlightTasks inFlight;
  private volatile boolean opened;
  private volatile long closeEndNanos;

  /** For a store with {@link StoreName}. */
  protected AbstractStore() {
    this(null);
  }

  /** For a store with this name; null stands for that of {@link StoreName}. */
  protected AbstractStore(@Nullable String name) {
    this(name, Threads.END);
  }

  /** For a test with threads that do not end, which {@code close} waits for so long. */
  AbstractStore(@Nullable String name, Duration end) {
    this.name = name == null ? StoreLife.nameOf(getClass()) : name;
    this.life = new StoreLife(this.name);
    this.workers = new Threads(this.name, end);
    this.threads = new Threads(this.name, end);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public final void configure(StoreConfig given) {
    life.configured();
    StoreConfig config = commonNames(given);
    settings = Settings.read(config, configKeys());
    doConfigure(config);
  }

  /** Gives keys of {@link CommonKeys} their names, for a store that has other ones or other defaults. */
  protected StoreConfig commonNames(StoreConfig given) {
    return given;
  }

  /**
   * Checks the values of the store's keys, and touches nothing; see {@link Store#configure}. By default
   * each is checked by itself. A store whose configuration has an error then is not opened.
   */
  protected void doConfigure(StoreConfig config) {
    configKeys().forEach(config::get);
  }

  /** The value of a key. */
  protected final <T> T value(ConfigKey<T> key) {
    return settings().config().get(key);
  }

  /** Refuses any next stage: by default a store is the last one. */
  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return next == null
        ? Optional.empty()
        : Optional.of(name + " is a last stage and takes no next stage; found " + next.name());
  }

  @Override
  public final void open(StoreContext context) {
    life.opened();
    changing.lock();
    try {
      settings().requireOpenable(name, refuseNext(context.next()));
      inFlight =
          new InFlightTasks(
              name,
              settings(),
              maxTasks(),
              context.nanoClock(),
              new FlushResult.Ledger(this::countFailedDump));
      if (!isScheduler()) {
        inFlight.start(workers.factory("deadline", this::threadFailed));
      }
      doOpen(context);
      opened = true;
    } catch (IOException e) {
      throw new StoreException(name + " cannot be opened: " + e, e);
    } finally {
      if (!opened) {
        life.closed();
        if (inFlight != null) {
          inFlight.stop();
        }
        workers.end(Duration.ZERO);
      }
      changing.unlock();
    }
  }

  /**
   * Acquires what the store needs; see {@link Store#open}. The layout and the role are known, and a next
   * stage was not refused. When it throws, it has released all but {@link #newWorkers}.
   */
  protected abstract void doOpen(StoreContext context) throws IOException;

  private Settings settings() {
    return Objects.requireNonNull(settings, "not configured");
  }

  /** The layout that the store is configured for, when it lists the keys of it. */
  protected final BlockLayout layout() {
    return Objects.requireNonNull(settings().layout(), "no layout was configured");
  }

  /** Whether the store has the scheduler role: then it is never given a task. */
  protected final boolean isScheduler() {
    return settings().isScheduler();
  }

  /** How many tasks may be in flight: by default {@code waiting_queue_depth}, of a store that lists it. */
  protected int maxTasks() {
    return settings().maxTasks();
  }

  /** The time of a task, from its start to its deadline. */
  protected final Duration timeout() {
    return Duration.ofNanos(settings().timeoutNanos());
  }

  /**
   * Makes threads, named {@code ucm-<store>-<role>-<n>}, that run what they are given, in order. Their queue
   * needs no bound, as tasks in flight have one. {@code close} has them end before {@link #doClose}.
   */
  protected final Executor newWorkers(String role, int count) {
    return workers.workers(role, count, this::threadFailed);
  }

  /**
   * Makes other threads with such names, which {@link #doClose} has end. As of all threads of the store,
   * {@link #threadFailed} is told of one that ends by an error.
   */
  protected final ThreadFactory newThreads(String role) {
    return threads.factory(role, this::threadFailed);
  }

  /**
   * Closes the store, as no other thread does the work of one that ended by an error, such as an
   * OutOfMemoryError that the process survives. Does so on a thread of its own, and waits for no task.
   */
  protected void threadFailed(Thread thread, Throwable fault) {
    Threads.close(this, thread, fault);
  }

  /** Logs why the store was closed: by {@link System.Logger}, for stores with no log of their own. */
  protected void logFailure(String message, Throwable fault) {
    System.getLogger(AbstractStore.class.getName()).log(System.Logger.Level.ERROR, message, fault);
  }

  /**
   * Called first by each operation that a subclass overrides.
   *
   * @throws StoreClosedException when the store is closed
   * @throws IllegalStateException when it is not open yet
   */
  protected final void requireOpen() {
    life.requireOpen();
    if (!opened) {
      // Open and close change it at once, but for one that is under way.
      life.requireOpen();
      throw new IllegalStateException("Store " + name + " is still being opened");
    }
  }

  @Override
  public final BitSet lookup(BlockIds ids) {
    requireOpen();
    return doLookup(ids);
  }

  /** Answers {@link Store#lookup} while the store is open. */
  protected abstract BitSet doLookup(BlockIds ids);

  @Override
  public Task load(Transfer transfer) {
    return submit(transfer, false);
  }

  @Override
  public Task dump(Transfer transfer) {
    return submit(transfer, true);
  }

  private Task submit(Transfer transfer, boolean isDump) {
    requireOpen();
    InFlightTasks tasks = tasks();
    settings().require(name, transfer, takesDeviceMemory());
    TransferTask task = tasks.enter(transfer, isDump, this);
    try {
      // One without shards has completed.
      if (!task.check()) {
        if (isDump) {
          doDump(task);
        } else {
          doLoad(task);
        }
      }
    } catch (RuntimeException | Error e) {
      tasks.withdraw(task);
      throw e;
    }
    tasks.started(task);
    return task;
  }

  private InFlightTasks tasks() {
    return Objects.requireNonNull(inFlight);
  }

  /** Whether transfers may name memory of a device; by default they may not. */
  protected boolean takesDeviceMemory() {
    return false;
  }

  /** Makes the task of a transfer; for stores with a subclass of it. Must not block, nor call the store. */
  protected TransferTask newTask(long id, Transfer transfer, boolean isDump) {
    return new TransferTask(id, transfer);
  }

  /** Starts a load of one or more shards; must not wait. What it throws goes to the caller. */
  protected abstract void doLoad(TransferTask task);

  /** Starts a dump, as {@link #doLoad}. */
  protected abstract void doDump(TransferTask task);

  /** The tasks that have not completed, oldest first; a copy. */
  protected final List<TransferTask> openTasks() {
    return tasks().all();
  }

  /**
   * Waits for the dumps accepted before, and for what {@link #doFlush} waits for. A block has failed
   * when a shard of its dump did not end well, or {@link #dumpFailed} said so.
   */
  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    requireOpen();
    InFlightTasks tasks = tasks();
    long last = tasks.lastTask();
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    tasks.expire(false);
    Set<BlockIds> pending = tasks.dumps().await(last, end);
    doFlush(last, Duration.ofNanos(Math.max(0, end - System.nanoTime())), pending);
    return tasks.dumps().take(pending.size());
  }

  /**
   * Waits for what dumps leave to be done when they are settled, such as for blocks that lack shards.
   *
   * @param lastTask the number of the last task that is waited for
   * @param timeout how long to wait at the most
   * @param pending takes the blocks that are neither durable nor failed in the end, an id each
   */
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending)
      throws InterruptedException {}

  /**
   * Has the next flush report a block, which will not become durable. Also while the store closes.
   *
   * @param fault why, or null
   */
  protected final void dumpFailed(long idHigh, long idLow, @Nullable Throwable fault) {
    tasks().dumps().failed(idHigh, idLow, fault);
  }

  /** Told of each block that the next flush reports as failed; under a lock, so counts it at the most. */
  protected void countFailedDump() {}

  /** Has the next flush report what one was told in vain. */
  protected final void flushFailed(FlushResult untold) {
    tasks().dumps().takeBack(untold);
  }

  /**
   * Waits until the dumps accepted so far are settled. Also while the store closes.
   *
   * @return the blocks of those that are not, an id each; the caller's
   */
  protected final Set<BlockIds> awaitDumps(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    return tasks().dumps().await(tasks().lastTask(), end);
  }

  /** What the next flush will report as failed. */
  protected final FlushResult failedDumps() {
    return tasks().dumps().peek(0);
  }

  /** What the next flush would report as failed, and does not report any more. */
  protected final FlushResult takeFailedDumps() {
    return tasks().dumps().take(0);
  }

  /** Says that a dump is done with; see {@link TransferTask#settlesWhenCompleted}. */
  protected final void settled(TransferTask dump) {
    tasks().dumps().settle(dump);
  }

  /** Waits for the tasks in flight, and for dumps to settle, as long as a task may take; ends the rest. */
  @Override
  public final void close() {
    life.closed();
    changing.lock();
    try {
      if (opened) {
        opened = false;
        closeOpened(tasks());
      }
    } finally {
      changing.unlock();
    }
  }

  private void closeOpened(InFlightTasks tasks) {
    boolean interrupted = Thread.interrupted();
    closeEndNanos = System.nanoTime() + (interrupted ? 0 : settings().timeoutNanos());
    try {
      tasks.refuse();
      int left = tasks.awaitNone(closeEndNanos);
      if (left > 0) {
        closesBefore(left);
      }
    } catch (InterruptedException e) {
      interrupted = true;
      closeEndNanos = System.nanoTime();
    }
    try {
      tasks.expire(true);
      tasks.stop();
      workers.end(timeToClose());
      doClose();
    } catch (IOException e) {
      throw new UncheckedIOException(name + " did not close cleanly", e);
    } finally {
      threads.end(timeToClose());
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Told by {@code close} of tasks that have not completed, before what has not begun of them ends. */
  protected void closesBefore(int openTasks) {}

  /**
   * Releases what {@link #doOpen} acquired. No task is in flight and no thread of {@link #newWorkers} lives,
   * unless shards that have begun are held up. An interrupt of the closing thread is kept for later.
   */
  protected void doClose() throws IOException {}

  /** What is left to {@link #doClose} of the time of a task; nothing when the thread was interrupted. */
  protected final Duration timeToClose() {
    return Duration.ofNanos(Math.max(0, closeEndNanos - System.nanoTime()));
  }

  @Override
  public String toString() {
    return life.toString();
  }
}
