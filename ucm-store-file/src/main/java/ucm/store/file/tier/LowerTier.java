package ucm.store.file.tier;

import java.time.Duration;
import java.util.BitSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.file.health.StageHealth;

/**
 * The next stage, and whether it may be used. Look-ups ask it on threads of their own, so that one that
 * hangs costs the caller as long as a probe may take. Thread-safe.
 */
final class LowerTier {

  private final Store next;
  private final StageHealth health;
  private final Executor threads;
  private final long patienceNanos;

  /**
   * Asks nothing yet.
   *
   * @param threads ask for look-ups
   * @param timeoutNanos how long a caller may wait
   */
  LowerTier(Store next, StageHealth health, Executor threads, long timeoutNanos) {
    this.next = next;
    this.health = health;
    this.threads = threads;
    this.patienceNanos = Math.min(timeoutNanos, health.patienceNanos());
  }

  /** Asks a stage for a block that it does not have. */
  static void probe(Store next) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    BitSet _ = next.lookup(BlockIds.of(random.nextLong(), random.nextLong()));
  }

  /** Why it must not be used now, or null when it may be. */
  @Nullable StoreException refusal() {
    return health.refusal();
  }

  /** It has moved a shard. */
  void answered() {
    health.answered();
  }

  /** Which blocks it has; none when it does not answer. */
  BitSet lookup(BlockIds ids) {
    return ids.isEmpty() ? new BitSet() : ask(() -> next.lookup(ids), new BitSet());
  }

  /** As {@link Store#lookupPrefix}; -1 when it does not answer. */
  int lookupPrefix(BlockIds ids) {
    return ask(() -> next.lookupPrefix(ids), -1);
  }

  /** Which blocks it keeps beyond this process; none when it does not answer. */
  BitSet durable(BlockIds ids) {
    return ids.isEmpty() ? new BitSet() : ask(() -> next.durable(ids), new BitSet());
  }

  /** Which blocks it knows without asking its volume. */
  BitSet known(BlockIds ids) {
    BitSet known =
        refusal() == null && next instanceof IndexLookup index ? index.lookupKnown(ids) : null;
    return known == null ? new BitSet() : known;
  }

  private <T> T ask(Supplier<T> question, T none) {
    if (refusal() != null) {
      return none;
    }
    FutureTask<T> asked = new FutureTask<>(question::get);
    RuntimeException fault = null;
    health.begun();
    try {
      threads.execute(asked);
      return asked.get(patienceNanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      asked.cancel(false);
      fault = new StoreException(next.name() + " did not answer a look-up in time", e);
    } catch (ExecutionException e) {
      fault = new StoreException(next.name() + " failed a look-up: " + e.getCause(), e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RejectedExecutionException _) {
      // The store closes.
    } finally {
      health.ended(fault);
    }
    return none;
  }

  /** As {@link Store#load}. */
  Task load(Transfer transfer) {
    return begun(() -> next.load(transfer));
  }

  /** As {@link Store#dump}. */
  Task dump(Transfer transfer) {
    return begun(() -> next.dump(transfer));
  }

  private Task begun(Supplier<Task> call) {
    health.begun();
    Task task;
    try {
      task = call.get();
    } catch (RuntimeException e) {
      // That it has enough to do is no fault.
      health.ended(e instanceof QueueFullException ? null : e);
      throw e;
    }
    task.whenTerminal(() -> health.ended(fault(task.result())));
    return task;
  }

  private @Nullable RuntimeException fault(TransferResult result) {
    BitSet failed = result.failedShards();
    for (int i = failed.nextSetBit(0); i >= 0; i = failed.nextSetBit(i + 1)) {
      ShardOutcome outcome = result.outcome(i);
      if (outcome == ShardOutcome.FAILED || outcome == ShardOutcome.EXPIRED) {
        return new StoreException(next.name() + " did not move a transfer: " + result);
      }
    }
    return null;
  }

  /** As {@link Store#flush}; asks nothing while it must not be used. */
  FlushResult flush(Duration timeout) throws InterruptedException {
    return refusal() == null ? next.flush(timeout) : FlushResult.clean();
  }
}
