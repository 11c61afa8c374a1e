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
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.table.ConcurrentBlockSet;
import ucm.store.file.health.StageHealth;

/**
 * The next stage, whether it may be used, and which blocks it had, or was given, not long ago. Look-ups ask it on threads of their own, so that one that
 * hangs costs the caller as long as a probe may take. Thread-safe.
 */
final class LowerTier {

  /** How many blocks are remembered. */
  static final int REMEMBERED_BLOCKS = 1 << 17;

  final Store next;
  final StageHealth health;
  private final Executor threads;
  private final long patienceNanos;
  private final ConcurrentBlockSet remembered = new ConcurrentBlockSet(REMEMBERED_BLOCKS);

  /** Asks nothing yet; look-ups are asked by the threads, and no caller waits beyond the timeout. */
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
    BitSet found = ids.isEmpty() ? new BitSet() : ask(() -> next.lookup(ids), new BitSet());
    had(ids, found);
    return found;
  }

  /** As {@link Store#lookupPrefix}; -1 when it does not answer. */
  int lookupPrefix(BlockIds ids) {
    int last = ask(() -> next.lookupPrefix(ids), -1);
    for (int i = 0; i <= last; i++) {
      had(ids.high(i), ids.low(i));
    }
    return last;
  }

  /** As {@link Store#notePrompt}. */
  void notePrompt(BlockIds ids) {
    var _ =
        ask(
            () -> {
              next.notePrompt(ids);
              return true;
            },
            false);
  }

  /** It was found to have a block, or was given it. */
  void had(long idHigh, long idLow) {
    remembered.add(idHigh, idLow);
  }

  /** It was found to have some blocks. */
  void had(BlockIds ids, BitSet some) {
    some.stream().forEach(i -> had(ids.high(i), ids.low(i)));
  }

  /** Whether it had a block not long ago. */
  boolean hasHad(long idHigh, long idLow) {
    return remembered.contains(idHigh, idLow);
  }

  /** Which blocks it keeps beyond this process; none when it does not answer. */
  BitSet durable(BlockIds ids) {
    return ids.isEmpty() ? new BitSet() : ask(() -> next.durable(ids), new BitSet());
  }

  /** Which blocks it knows without asking its volume. */
  BitSet known(BlockIds ids) {
    return refusal() == null ? Tiers.known(next, ids) : new BitSet();
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
    boolean isFault =
        result.failedShards().stream()
            .mapToObj(result::outcome)
            .anyMatch(how -> how == ShardOutcome.FAILED || how == ShardOutcome.EXPIRED);
    return isFault ? new StoreException(next.name() + " did not move a transfer: " + result) : null;
  }

  /** As {@link Store#flush}; asks nothing while it must not be used. */
  FlushResult flush(Duration timeout) throws InterruptedException {
    return refusal() == null ? next.flush(timeout) : FlushResult.clean();
  }
}
