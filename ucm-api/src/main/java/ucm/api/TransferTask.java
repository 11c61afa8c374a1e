package ucm.api;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The task that stores hand out: counts the shards of a transfer as they end.
 *
 * <p>The store calls {@link #end} exactly once per shard, from any thread. The last one makes the task
 * terminal. Ending a shard costs no allocation.
 */
public final class TransferTask implements Task {

  private static final VarHandle OUTCOME =
      MethodHandles.arrayElementVarHandle(ShardOutcome[].class);

  private final long id;
  private final Transfer transfer;
  // Null until a shard has ended.
  private final @Nullable ShardOutcome[] outcomes;
  private final AtomicInteger open;
  private final AtomicReference<@Nullable Throwable> cause = new AtomicReference<>();
  private final CountDownLatch terminal = new CountDownLatch(1);
  private volatile @Nullable Runnable ending;
  // Guarded by this; null once the actions have been taken to be run.
  private @Nullable List<Runnable> actions = new ArrayList<>(1);

  /**
   * A task of which no shard has ended; one of an empty transfer is terminal at once.
   *
   * @param id names the task in logs
   */
  public TransferTask(long id, Transfer transfer) {
    this.id = id;
    this.transfer = transfer;
    this.outcomes = new @Nullable ShardOutcome[transfer.shardCount()];
    this.open = new AtomicInteger(outcomes.length);
    if (outcomes.length == 0) {
      finish();
    }
  }

  /** What is moved. */
  public Transfer transfer() {
    return transfer;
  }

  /**
   * Ends a shard, tells the transfer's listener, and makes the task terminal if it was the last.
   *
   * @param shard index of the shard within the transfer
   * @param fault why it did not end well, or null; the first one is kept as the task's cause
   * @throws IllegalStateException when the shard has ended before
   */
  public void end(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    if (!OUTCOME.compareAndSet(outcomes, shard, null, outcome)) {
      throw new IllegalStateException(
          "shard " + shard + " of task " + id + " ended twice; now " + outcome);
    }
    if (fault != null) {
      cause.compareAndSet(null, fault);
    }
    try {
      transfer.listener().shardEnded(transfer, shard, outcome);
    } finally {
      // Also when a listener throws, which it must not: nobody shall wait for this task for ever.
      // The decrement publishes outcome and cause to whoever sees the latch open.
      if (open.decrementAndGet() == 0) {
        finish();
      }
    }
  }

  /** Ends a shard well. */
  public void ok(int shard) {
    end(shard, ShardOutcome.OK, null);
  }

  /** Whether a shard has ended. */
  public boolean hasEnded(int shard) {
    return OUTCOME.getAcquire(outcomes, shard) != null;
  }

  @Override
  public long id() {
    return id;
  }

  @Override
  public boolean check() {
    return terminal.getCount() == 0;
  }

  @Override
  public TransferResult await(Duration timeout) throws InterruptedException {
    if (!terminal.await(TimeUnit.NANOSECONDS.convert(timeout), TimeUnit.NANOSECONDS)) {
      throw new StoreTimeoutException(
          "task "
              + id
              + " is not terminal after "
              + timeout.toMillis()
              + " ms: "
              + open.get()
              + " of "
              + outcomes.length
              + " shards are open; the memory is still in use");
    }
    return result();
  }

  @Override
  public TransferResult result() {
    if (!check()) {
      throw new IllegalStateException("task " + id + " is not terminal; await it first");
    }
    ShardOutcome[] ended = new ShardOutcome[outcomes.length];
    for (int i = 0; i < ended.length; i++) {
      ended[i] = Objects.requireNonNull(outcomes[i], "a terminal task has no open shard");
    }
    return new TransferResult(transfer, ended, cause.get());
  }

  @Override
  public void whenTerminal(Runnable action) {
    synchronized (this) {
      if (actions != null) {
        actions.add(action);
        return;
      }
    }
    action.run();
  }

  /**
   * Sets what the store does before anybody sees the task terminal, such as giving back the room that
   * the task took: who has waited for one task may hand in the next. Run on the thread that ends the
   * last shard, or at once when the task is terminal. Set at most once, before a shard can end.
   */
  public void beforeTerminal(Runnable action) {
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
      terminal.countDown();
    }
    List<Runnable> toRun;
    synchronized (this) {
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
