package ucm.api;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * The tasks of an open store that have not completed. Keeps them within bounds, ends what has not begun
 * at their deadline, and lets {@code close} wait for them. Thread-safe.
 *
 * <p>All tasks have the same time, so the order of arrival is the order of their deadlines: one thread
 * sleeps until the first is due, and a task that comes while it sleeps is due later and wakes no thread.
 */
final class InFlightTasks {

  /** The lock, until it is closed. */
  private interface Held extends AutoCloseable {
    @Override
    void close();
  }

  private final String store;
  private final Settings settings;
  private final int maxTasks;
  private final LongSupplier clock;
  private final FlushResult.Ledger dumps;
  private final ReentrantLock lock = new ReentrantLock();
  private final Held held = lock::unlock;
  private final Condition changed = lock.newCondition();
  private final Condition added = lock.newCondition();
  // Guarded by lock, as is what follows; in order of arrival.
  private final SequencedSet<TransferTask> open = new LinkedHashSet<>();
  // Those of them that the store has taken over and that have not expired.
  private final SequencedSet<TransferTask> due = new LinkedHashSet<>();
  private int shards;
  private int entering;
  private long lastTask;
  private boolean refusing;
  private boolean stopped;
  private boolean asleep;

  InFlightTasks(
      String store, Settings settings, int maxTasks, LongSupplier clock, FlushResult.Ledger dumps) {
    this.store = store;
    this.settings = settings;
    this.maxTasks = maxTasks;
    this.clock = clock;
    this.dumps = dumps;
  }

  /**
   * Lets a task in, which {@link #started} or {@link #withdraw} must follow.
   *
   * @throws QueueFullException when a bound is reached
   * @throws StoreClosedException after {@link #refuse}
   */
  TransferTask enter(Transfer transfer, boolean isDump, AbstractStore maker) {
    try (Held _ = hold()) {
      int count = transfer.shardCount();
      if (refusing) {
        throw new StoreClosedException(store);
      }
      if (open.size() >= maxTasks) {
        throw new QueueFullException(
            store + " tasks", open.size(), CommonKeys.WAITING_QUEUE_DEPTH.name());
      }
      if (shards > 0 && (long) shards + count > settings.maxShards()) {
        throw new QueueFullException(
            store + " shards", shards, CommonKeys.RUNNING_QUEUE_DEPTH.name());
      }
      TransferTask task = maker.newTask(++lastTask, transfer, isDump);
      task.enter(this, isDump, clock.getAsLong() + settings.timeoutNanos());
      if (count > 0) {
        open.add(task);
        shards += count;
        if (isDump) {
          dumps.add(task);
        }
      }
      entering++;
      return task;
    }
  }

  /** The store has taken the task over, which expires from now on. */
  void started(TransferTask task) {
    try (Held _ = hold()) {
      entered();
      if (!open.contains(task)) {
        return;
      }
      due.add(task);
      if (asleep) {
        added.signal();
      }
    }
  }

  /** The store has refused the task, of which nothing was started. */
  void withdraw(TransferTask task) {
    dumps.settle(task);
    try (Held _ = hold()) {
      entered();
      remove(task);
    }
  }

  private Held hold() {
    lock.lock();
    return held;
  }

  private void entered() {
    entering--;
    if (entering == 0) {
      changed.signalAll();
    }
  }

  /** The last shard of a task has ended; the task is not seen to have completed yet. */
  void ending(TransferTask task, boolean isDump) {
    if (isDump) {
      dumps.noteFailures(task.outcome());
      if (task.settlesWhenCompleted()) {
        dumps.settle(task);
      }
    }
    remove(task);
  }

  private void remove(TransferTask task) {
    try (Held _ = hold()) {
      if (open.remove(task)) {
        due.remove(task);
        shards -= task.transfer().shardCount();
        if (open.isEmpty()) {
          changed.signalAll();
        }
      }
    }
  }

  /** The dumps among them, and those that are not settled. */
  FlushResult.Ledger dumps() {
    return dumps;
  }

  /** Whether the deadline of a task has passed. */
  boolean isPast(TransferTask task) {
    return clock.getAsLong() - task.deadlineNanos() >= 0;
  }

  long lastTask() {
    try (Held _ = hold()) {
      return lastTask;
    }
  }

  /** Those that have not completed, oldest first; a copy. */
  List<TransferTask> all() {
    try (Held _ = hold()) {
      return List.copyOf(open);
    }
  }

  /** Lets no task in any more, and waits for those that are being handed to the store. */
  void refuse() {
    try (Held _ = hold()) {
      refusing = true;
      while (entering > 0) {
        changed.awaitUninterruptibly();
      }
    }
  }

  /**
   * Waits until all have completed and dumps are settled.
   *
   * @param end until when, of {@link System#nanoTime}
   * @return how many have not completed
   */
  int awaitNone(long end) throws InterruptedException {
    try (Held _ = hold()) {
      long left = end - System.nanoTime();
      while (!open.isEmpty() && left > 0) {
        left = changed.awaitNanos(left);
      }
    }
    Set<BlockIds> _ = dumps.await(Long.MAX_VALUE, end);
    return all().size();
  }

  /** Starts the thread, which {@link #stop} ends; before any task, as the first one would wait for its start. */
  void start(ThreadFactory threads) {
    threads.newThread(this::expireDue).start();
  }

  private void expireDue() {
    for (TransferTask task = awaitDue(); task != null; task = awaitDue()) {
      expire(task);
    }
  }

  /** Takes the first task whose deadline has passed; null when the thread should end. */
  private @Nullable TransferTask awaitDue() {
    try (Held _ = hold()) {
      while (!stopped) {
        asleep = due.isEmpty();
        if (asleep) {
          added.awaitUninterruptibly();
          continue;
        }
        long left = due.getFirst().deadlineNanos() - clock.getAsLong();
        if (left <= 0) {
          return due.removeFirst();
        }
        try {
          var _ = added.awaitNanos(left);
        } catch (InterruptedException e) {
          // Only stop ends this thread.
        }
      }
      return null;
    }
  }

  /**
   * Ends what has not begun of those whose deadline has passed; the thread may be late.
   *
   * @param all of all of them, as if their time had passed
   */
  void expire(boolean all) {
    List<TransferTask> late = new ArrayList<>();
    try (Held _ = hold()) {
      while (!due.isEmpty() && (all || isPast(due.getFirst()))) {
        late.add(due.removeFirst());
      }
    }
    late.forEach(this::expire);
  }

  private void expire(TransferTask task) {
    task.expire(expiry(task));
  }

  /** Why what is left of a task is not moved any more. */
  StoreTimeoutException expiry(TransferTask task) {
    return new StoreTimeoutException(
        String.format(
            "%s %s was not done within timeout_ms %s: raise timeout_ms, or find "
                + "out what holds it up",
            store, task, TimeUnit.NANOSECONDS.toMillis(settings.timeoutNanos())));
  }

  /** Has the thread of the deadlines end. */
  void stop() {
    try (Held _ = hold()) {
      stopped = true;
      added.signalAll();
    }
  }

  /**
   * What {@link AbstractStore} reads of the keys that its subclass lists.
   *
   * @param config all of them
   * @param layout null without keys of a layout, and when they are wrong
   * @param isScheduler whether the store looks up and moves no data
   * @param timeoutNanos the time of a task
   * @param maxTasks tasks in flight at the most
   * @param maxShards shards of all of them at the most; a task of more may be in flight alone
   */
  record Settings(
      StoreConfig config,
      @Nullable BlockLayout layout,
      boolean isScheduler,
      long timeoutNanos,
      int maxTasks,
      int maxShards) {

    private static final int DEFAULT_TIMEOUT_MS = 30_000;

    static Settings read(StoreConfig config, List<ConfigKey<?>> keys) {
      return new Settings(
          config,
          own(keys, CommonKeys.BLOCK_SIZE).flatMap(_ -> CommonKeys.layout(config)).orElse(null),
          own(keys, CommonKeys.DEVICE_ID).map(config::get).orElse(0) < 0,
          TimeUnit.MILLISECONDS.toNanos(
              own(keys, CommonKeys.TIMEOUT_MS).map(config::get).orElse(DEFAULT_TIMEOUT_MS)),
          own(keys, CommonKeys.WAITING_QUEUE_DEPTH).map(config::get).orElse(Integer.MAX_VALUE),
          own(keys, CommonKeys.RUNNING_QUEUE_DEPTH).map(config::get).orElse(Integer.MAX_VALUE));
    }

    /** The key of this name in the store's list; it may have a default of its own. */
    @SuppressWarnings("unchecked")
    private static <T> Optional<ConfigKey<T>> own(List<ConfigKey<?>> keys, ConfigKey<T> common) {
      return keys.stream()
          .filter(key -> key.name().equals(common.name()))
          .map(key -> (ConfigKey<T>) key)
          .findFirst();
    }

    /** Checks that a store may be opened; {@code refusal} is what it has against its next stage. */
    void requireOpenable(String store, Optional<String> refusal) {
      if (refusal.isPresent()) {
        throw new StoreException(refusal.get());
      }
      if (config.hasErrors()) {
        throw new StoreException(
            store + " is not opened, because its configuration has errors: correct them first");
      }
    }

    /**
     * Checks that a store can move a transfer.
     *
     * @param store its name
     * @param takesDeviceMemory whether it moves other than host memory
     * @throws StoreException when it cannot
     */
    void require(String store, Transfer transfer, boolean takesDeviceMemory) {
      if (isScheduler) {
        throw new StoreException(
            store
                + " has the scheduler role (device_id: -1), which looks up and moves no data: set"
                + " device_id to that of the worker");
      }
      if (layout != null && !transfer.layout().equals(layout)) {
        throw new StoreException(
            String.format(
                "a transfer of %s does not fit %s, which is configured for %s",
                transfer.layout(), store, layout));
      }
      if (!takesDeviceMemory && !transfer.isHost()) {
        throw new StoreException(
            String.format(
                "%s moves host memory, and the transfer names memory of a device: "
                    + "put an upper stage that copies it, as in Cache|%s",
                store, store));
      }
    }
  }
}
