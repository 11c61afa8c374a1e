package ucm.api;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The task that stores hand out: counts the shards of a transfer as they end.
 *
 * <p>The store calls {@link #end} exactly once per shard, from any thread. The last one completes the
 * task. Where several threads may end a shard, such as one that moves it and the timeout scheduler,
 * each asks {@link #begin} first, and only the one that may goes on.
 *
 * <p>A shard costs two bits, which the task has from the start; an outcome is written down for those
 * only that do not end well.
 *
 * <p>A store that extends {@link AbstractStore} may have a subclass ({@link AbstractStore#newTask}).
 */
public class TransferTask implements Task {

  /** Moves the bytes of a shard. */
  @FunctionalInterface
  public interface ShardMover {

    /**
     * Moves a shard; what it throws fails the shard.
     *
     * @return how the shard ended
     */
    ShardOutcome move(Transfer transfer, int shard) throws Exception;
  }

  private static final VarHandle WORD = MethodHandles.arrayElementVarHandle(long[].class);
  // A word has the bits of this many shards: its low half says which were begun, its high half
  // which have ended.
  private static final int SHARDS_OF_WORD = 32;
  // Who has helped yields for so long before it sleeps: others end the last shards, maybe on its
  // processor.
  private static final long AWAKE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private final long id;
  private final Transfer transfer;
  private final int shards;
  // A lock as well: a subclass may hold the task's own while it ends others.
  private final long[] states;
  private final AtomicInteger open;
  private final AtomicReference<@Nullable Throwable> cause = new AtomicReference<>();
  private final CountDownLatch completion;
  // How each shard ended that did not end well; made, under the lock of states, for the first of
  // them.
  private volatile @Nullable ShardOutcome @Nullable [] faults;
  private volatile @Nullable Runnable ending;
  // Set before the task is seen by another thread.
  private @Nullable InFlightTasks among;
  private boolean isDump;
  private long deadlineNanos;
  // Guarded by states; null once the actions have been taken to be run.
  private @Nullable List<Runnable> actions;
  // Guarded by states; null once the dump has settled.
  private @Nullable List<Runnable> settling = List.of();

  /**
   * A task of which no shard has ended; one of an empty transfer has completed at once.
   *
   * @param id names the task in logs
   */
  public TransferTask(long id, Transfer transfer) {
    this.id = id;
    this.transfer = transfer;
    this.shards = transfer.shardCount();
    this.states = new long[(shards + SHARDS_OF_WORD - 1) / SHARDS_OF_WORD];
    this.open = new AtomicInteger(shards);
    this.completion = new CountDownLatch(shards == 0 ? 0 : 1);
    this.actions = shards == 0 ? null : new ArrayList<>(1);
  }

  /** Says what it is among, and when it has to be done. */
  final void enter(InFlightTasks tasks, boolean dump, long deadline) {
    among = tasks;
    isDump = dump;
    deadlineNanos = deadline;
  }

  /** What is moved. */
  public final Transfer transfer() {
    return transfer;
  }

  /** Whether it is a dump of an {@link AbstractStore}. */
  public final boolean isDump() {
    return isDump;
  }

  /** When it expires, by the clock of its {@link AbstractStore}. */
  public final long deadlineNanos() {
    return deadlineNanos;
  }

  /**
   * Takes the right, and the duty, to move a shard and to {@link #end} it.
   *
   * @return true for one caller only; false when another has begun the shard, or it has ended
   */
  public final boolean begin(int shard) {
    return (set(shard, begun(shard)) & begun(shard)) == 0;
  }

  /**
   * Moves the shards that were not begun, and ends each. What is not begun at the deadline of an {@link
   * AbstractStore}'s task ends as {@link ShardOutcome#EXPIRED}.
   */
  public final void moveAll(ShardMover mover) {
    for (int shard = 0; shard < shards; shard++) {
      if (!hasBegun(shard) && !expireIfPast() && begin(shard)) {
        ShardOutcome outcome = ShardOutcome.FAILED;
        Throwable fault = null;
        try {
          outcome = mover.move(transfer, shard);
        } catch (Exception | Error e) {
          fault = e;
        }
        end(shard, outcome, fault);
      }
    }
  }

  /** Whether a shard was begun, or has ended. */
  public final boolean hasBegun(int shard) {
    return (get(shard) & begun(shard)) != 0;
  }

  /**
   * Ends a shard, tells the transfer's listener, and completes the task if it was the last. Who
   * did not {@link #begin} the shard may end it, too, where no other thread does.
   *
   * @param shard index of the shard within the transfer
   * @param fault why it did not end well, or null; the first one is kept as the task's cause
   * @throws IllegalStateException when the shard has ended before
   */
  public final void end(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    // First: when there is no memory for it, nothing has ended.
    @Nullable ShardOutcome[] written =
        Objects.requireNonNull(outcome, "outcome") == ShardOutcome.OK ? null : faults();
    if ((set(shard, begun(shard) | ended(shard)) & ended(shard)) != 0) {
      throw new IllegalStateException(
          "shard " + shard + " of task " + id + " ended twice; now " + outcome);
    }
    if (written != null) {
      written[shard] = outcome;
    }
    if (fault != null) {
      cause.compareAndSet(null, fault);
    }
    try {
      transfer.listener().shardEnded(transfer, shard, outcome);
    } finally {
      // Also when a listener throws, which it must not: no caller shall wait for this task for
      // ever. The decrement publishes what was written and the cause to a thread that sees the
      // latch open.
      if (open.decrementAndGet() == 0) {
        finish();
      }
    }
  }

  /** Ends a shard well. */
  public final void ok(int shard) {
    end(shard, ShardOutcome.OK, null);
  }

  /** Whether a shard has ended. */
  public final boolean hasEnded(int shard) {
    return (get(shard) & ended(shard)) != 0;
  }

  /**
   * Ends the shards that have not begun, as the task's time is over. Called by {@link AbstractStore}, at the
   * deadline or while the store closes.
   */
  protected void expire(StoreException why) {
    for (int shard = 0; shard < shards; shard++) {
      if (begin(shard)) {
        end(shard, ShardOutcome.EXPIRED, why);
      }
    }
  }

  /** Expires it when it is past its deadline, which the thread of the deadlines may be late to see. */
  protected final boolean expireIfPast() {
    if (among == null || !among.isPast(this)) {
      return false;
    }
    expire(among.expiry(this));
    return true;
  }

  /**
   * Whether a dump is done with for {@code flush} when it has completed; if not, the store tells it later
   * by {@link AbstractStore#settled}.
   */
  protected boolean settlesWhenCompleted() {
    return true;
  }

  /** Adds the blocks of a dump that is not settled which are neither durable nor failed, an id each. */
  protected void collectPending(Set<BlockIds> pending) {
    BlockIds ids = transfer.ids();
    for (int shard = 0; shard < shards; shard++) {
      if (!hasEnded(shard)) {
        pending.add(BlockIds.of(ids.high(shard), ids.low(shard)));
      }
    }
  }

  private static long begun(int shard) {
    return 1L << (shard % SHARDS_OF_WORD);
  }

  private static long ended(int shard) {
    return begun(shard) << SHARDS_OF_WORD;
  }

  private long get(int shard) {
    return (long) WORD.getAcquire(states, Objects.checkIndex(shard, shards) / SHARDS_OF_WORD);
  }

  /** Sets bits of a shard; returns its word as it was before. */
  private long set(int shard, long bits) {
    int word = Objects.checkIndex(shard, shards) / SHARDS_OF_WORD;
    return (long) WORD.getAndBitwiseOr(states, word, bits);
  }

  private @Nullable ShardOutcome[] faults() {
    @Nullable ShardOutcome[] made = faults;
    if (made == null) {
      synchronized (states) {
        made = faults;
        if (made == null) {
          made = new @Nullable ShardOutcome[shards];
          faults = made;
        }
      }
    }
    return made;
  }

  @Override
  public final long id() {
    return id;
  }

  @Override
  public final boolean check() {
    return completion.getCount() == 0;
  }

  /**
   * Does a small part of the task's work on the thread that awaits it, which would sleep otherwise. Called
   * again and again, while there is time left to wait. Must not wait for I/O nor for another thread.
   *
   * @return false when there is nothing left that this thread can do
   */
  protected boolean help() {
    return false;
  }

  @Override
  @SuppressWarnings("ThreadPriorityCheck") // No result depends on it.
  public final TransferResult await(Duration timeout) throws InterruptedException {
    long nanos = TimeUnit.NANOSECONDS.convert(timeout);
    long start = System.nanoTime();
    long left = nanos;
    long helped = start - AWAKE_NANOS;
    while (left > 0 && !check() && !Thread.currentThread().isInterrupted() && help()) {
      helped = System.nanoTime();
      left = nanos - (helped - start);
    }
    while (System.nanoTime() - helped < Math.min(left, AWAKE_NANOS) && !check()) {
      Thread.yield();
    }
    if (!completion.await(left, TimeUnit.NANOSECONDS)) {
      throw new StoreTimeoutException(
          String.format(
              "task %s has not completed after %s ms: %s of %s shards are open; "
                  + "the memory is still in use",
              id, timeout.toMillis(), open.get(), shards));
    }
    return result();
  }

  @Override
  public final TransferResult result() {
    if (!check()) {
      throw new IllegalStateException("task " + id + " has not completed; await it first");
    }
    return outcome();
  }

  /** How the shards ended so far. */
  final TransferResult outcome() {
    return new TransferResult(transfer, faults, cause.get());
  }

  @Override
  public final void whenTerminal(Runnable action) {
    synchronized (states) {
      if (actions != null) {
        actions.add(action);
        return;
      }
    }
    action.run();
  }

  @Override
  public final void whenSettled(Runnable action) {
    whenTerminal(
        () -> {
          if (!awaitSettling(action)) {
            action.run();
          }
        });
  }

  private boolean awaitSettling(Runnable action) {
    synchronized (states) {
      if (settling == null || settlesWhenCompleted()) {
        return false;
      }
      settling = settling.isEmpty() ? new ArrayList<>(1) : settling;
      settling.add(action);
    }
    settlingIsAwaited();
    return true;
  }

  /**
   * Somebody waits until the dump is {@linkplain #whenSettled settled}: a store that holds something back for
   * later does so no longer. Must not block.
   */
  protected void settlingIsAwaited() {}

  /** All is done with the dump; repeatable. */
  final void settle() {
    List<Runnable> toRun;
    synchronized (states) {
      toRun = settling == null ? List.of() : settling;
      settling = null;
    }
    toRun.forEach(Runnable::run);
  }

  /**
   * Sets what the store does before the task is seen to have completed, such as giving back the room that
   * the task took: a caller that waited for one task may hand in the next. Run on the thread that ends the
   * last shard, or at once when the task has completed. Set at most once, before a shard can end.
   */
  public final void beforeTerminal(Runnable action) {
    if (check()) {
      action.run();
    } else {
      ending = action;
    }
  }

  private void finish() {
    Runnable last = ending;
    try {
      if (last != null) {
        last.run();
      }
    } finally {
      try {
        if (among != null) {
          among.ending(this, isDump);
        }
      } finally {
        completion.countDown();
      }
    }
    List<Runnable> toRun;
    synchronized (states) {
      toRun = actions == null ? List.of() : actions;
      actions = null;
    }
    toRun.forEach(Runnable::run);
  }

  @Override
  public String toString() {
    return "task " + id + " of " + transfer + ", " + open.get() + " shards open";
  }
}
