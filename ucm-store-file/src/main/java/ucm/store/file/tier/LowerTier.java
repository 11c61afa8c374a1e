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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.table.ConcurrentBlockSet;
import ucm.store.file.FileStore;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.volume.Breaker;
import ucm.store.file.volume.TimeoutScheduler;

/**
 * The next stage, its breaker, and which blocks it had, or was given, not long ago. Look-ups ask it on threads
 * of their own, so that one that hangs costs the caller as long as a probe may take.
 *
 * <p>The breaker goes by the rules of {@code store_health}. It is fed by calls that fail, by silence, which is
 * when calls are under way and nothing was answered for as long as a probe may take, and by probes while it is
 * open. Thread-safe.
 */
final class LowerTier extends Breaker implements AutoCloseable {

  /** How many blocks are remembered. */
  static final int REMEMBERED_BLOCKS = 1 << 17;

  final Store next;
  private final Executor threads;
  private final long patienceNanos;
  private final ConcurrentBlockSet remembered = new ConcurrentBlockSet(REMEMBERED_BLOCKS);
  // A probe that hangs holds one of two threads.
  private final TimeoutScheduler timer;
  private final AtomicInteger calls = new AtomicInteger();
  private volatile long answeredNanos;

  /**
   * Asks nothing yet.
   *
   * @param metrics where its breaker counts
   * @param threads ask it when it is looked up
   * @param timeoutNanos how long a caller waits at most
   */
  LowerTier(
      StoreKind kind,
      Store next,
      FileStoreConfig.Health rules,
      StoreMetrics metrics,
      LongSupplier clock,
      Executor threads,
      long timeoutNanos) {
    super(
        kind.name(),
        "the next stage, " + next.name() + ",",
        rules,
        clock,
        Counters.of(metrics, "tier_health_"));
    this.next = next;
    this.threads = threads;
    patienceNanos = rules.enabled() ? Math.min(timeoutNanos, rules.timeoutNanos()) : timeoutNanos;
    timer = new TimeoutScheduler(kind, "tier-health", 2);
    metrics.gauge(
        "tier_health_state",
        "Breaker of the next stage: 0 closed, 1 half-open, 2 open",
        this::stateNumber);
  }

  /** Begins to probe it while it is given up, and to search for silence. */
  void start() {
    timer.watch(rules, this::findSilence, this::probeWhenDown);
  }

  private void findSilence() {
    findLateProbe();
    if (calls.get() > 0 && clock.getAsLong() - answeredNanos >= rules.timeoutNanos()) {
      answered();
      failed(late("the next stage, " + next.name() + ", did not answer"));
    }
  }

  private void probeWhenDown() {
    if (refusal() != null) {
      var _ = probe();
    }
  }

  /** Asks it for a block that it does not have. */
  @Override
  protected void tryOut() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    BitSet _ = next.lookup(BlockIds.of(random.nextLong(), random.nextLong()));
  }

  /** A call is about to be made, which {@link #ended} must follow. */
  private void begun() {
    if (calls.getAndIncrement() == 0) {
      answered();
    }
  }

  /** It has moved a shard, or answered otherwise. */
  void answered() {
    answeredNanos = clock.getAsLong();
  }

  /** A call has ended, with a fault of the stage or null. */
  private void ended(@Nullable RuntimeException fault) {
    answered();
    calls.decrementAndGet();
    if (fault == null) {
      succeeded();
    } else {
      failed(fault);
    }
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
    begun();
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
      ended(fault);
    }
    return none;
  }

  /** As {@link Store#load}. */
  Task load(Transfer transfer) {
    return call(() -> next.load(transfer));
  }

  /** As {@link FileStore#loadToCopy} where it keeps files; else a load as any other. */
  Task loadToCopy(Transfer transfer) {
    return call(
        () -> next instanceof FileStore files ? files.loadToCopy(transfer) : next.load(transfer));
  }

  /** As {@link Store#dump}. */
  Task dump(Transfer transfer) {
    return call(() -> next.dump(transfer));
  }

  private Task call(Supplier<Task> start) {
    begun();
    Task task;
    try {
      task = start.get();
    } catch (RuntimeException e) {
      // That it has enough to do is no fault.
      ended(e instanceof QueueFullException ? null : e);
      throw e;
    }
    task.whenTerminal(() -> ended(fault(task.result())));
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

  /** Watches no more; a probe that hangs is left to end by itself. */
  @Override
  public void close() {
    timer.close();
  }
}
