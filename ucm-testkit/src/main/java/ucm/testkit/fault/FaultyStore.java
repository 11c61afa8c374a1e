package ucm.testkit.fault;

import java.time.Duration;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.StoreConfig;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.Fault.Call;

/**
 * A store around another one that goes wrong on demand, by rate or at the nth call, and always
 * within the contract of {@link Store}: what the upper stage makes of it is what is tested.
 *
 * <pre>{@code
 * FaultyStore faulty =
 *     new FaultyStore(new MemoryStore(), seed)
 *         .at(1, Call.LOAD, Fault.CLOSE)
 *         .rate(Call.DUMP, Fault.FAIL, 0.05);
 * }</pre>
 *
 * <p>Faults are planned before the store is opened. The same seed gives the same faults: the number
 * of a call and of a shard decide, not the order in which threads come. Seed and number of the call
 * are in every message. The wrapped store is opened and closed with this one.
 */
public final class FaultyStore extends ForwardingStore {

  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(60);

  private final Store inner;
  private final FaultPlan plan;
  private final StoreLife life;
  private final AtomicLong taskNumbers = new AtomicLong();
  private final Set<FaultyTransfer> delayed = ConcurrentHashMap.newKeySet();
  private final Set<FaultyTransfer> open = ConcurrentHashMap.newKeySet();
  // Guarded by itself: the blocks lost since the last flush, as hexadecimal digits.
  private final Set<String> dropped = new LinkedHashSet<>();
  private Executor delays = action -> {};

  /**
   * Wraps a store that is neither configured nor opened.
   *
   * @param seed decides what strikes when; print it, and use it again to see the same again
   */
  public FaultyStore(Store inner, long seed) {
    this.inner = inner;
    this.plan = new FaultPlan(seed);
    this.life = new StoreLife(inner.name());
  }

  /**
   * Plans a fault that strikes by chance.
   *
   * @param rate of the calls, 0 to 1; of shards or blocks for {@link Fault#FAIL}, {@link Fault#MISS},
   *     {@link Fault#CORRUPT} and {@link Fault#DROP}
   */
  public FaultyStore rate(Call call, Fault fault, double rate) {
    plan.rate(call, fault, rate);
    return this;
  }

  /**
   * Plans a fault that strikes one call, and every shard of it.
   *
   * @param number of the call, from 1, counted for each kind of call by itself
   */
  public FaultyStore at(int number, Call call, Fault fault) {
    plan.force(call, fault, number);
    return this;
  }

  /**
   * Sets the executor that starts what {@link Fault#DELAY} holds back, for example {@code queue::add}.
   * Without this it waits until the store is closed, and then expires.
   */
  public FaultyStore delayedBy(Executor executor) {
    delays = executor;
    return this;
  }

  /** How often a fault has struck: calls, or shards or blocks; see {@link #rate}. */
  public long struck(Call call, Fault fault) {
    return plan.struck(call, fault);
  }

  /** How often a call was made. */
  public int calls(Call call) {
    return plan.calls(call);
  }

  @Override
  protected Store inner() {
    return inner;
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    return null;
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
    inner.configure(config);
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    int number = plan.next(Call.OPEN);
    try {
      if (plan.strikes(Call.OPEN, Fault.THROW, number, 0)) {
        throw injected(Call.OPEN, number);
      }
      inner.open(context);
    } catch (RuntimeException e) {
      life.closed();
      inner.close();
      throw e;
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    life.requireOpen();
    int number = plan.next(Call.LOOKUP);
    BitSet found = inner.lookup(ids);
    for (int i = found.nextSetBit(0); i >= 0; i = found.nextSetBit(i + 1)) {
      if (plan.strikes(Call.LOOKUP, Fault.MISS, number, i)) {
        found.clear(i);
      }
    }
    return found;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    if (plan.isPlanned(Call.LOOKUP, Fault.MISS)) {
      return lookup(ids).nextClearBit(0) - 1;
    }
    life.requireOpen();
    plan.next(Call.LOOKUP);
    return inner.lookupPrefix(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return move(Call.LOAD, transfer, inner::load);
  }

  @Override
  public Task dump(Transfer transfer) {
    return move(Call.DUMP, transfer, inner::dump);
  }

  private Task move(Call call, Transfer transfer, Function<Transfer, Task> innerCall) {
    life.requireOpen();
    int number = plan.next(call);
    if (plan.strikes(call, Fault.THROW, number, 0)) {
      throw injected(call, number);
    }
    if (plan.strikes(call, Fault.QUEUE_FULL, number, 0)) {
      throw new QueueFullException(site(call, number), 0, CommonKeys.WAITING_QUEUE_DEPTH.name());
    }
    boolean closes = plan.strikes(call, Fault.CLOSE, number, 0);
    boolean reorders = plan.strikes(call, Fault.REORDER, number, 0);
    @Nullable ShardOutcome[] planned = outcomes(call, number, transfer);
    if (closes) {
      for (int shard = planned.length / 2; shard < planned.length; shard++) {
        planned[shard] = ShardOutcome.FAILED;
      }
    }
    FaultyTransfer moved =
        new FaultyTransfer(
            new TransferTask(taskNumbers.incrementAndGet(), transfer),
            planned,
            injected(call, number),
            reorders ? new Random(plan.draw(call, number)) : null);
    if (plan.strikes(call, Fault.DELAY, number, 0)) {
      // A transfer of nothing, so that what would be refused later is refused now.
      innerCall.apply(Transfer.scattered(transfer.layout()).build()).result().requireOk();
      enter(moved);
      delayed.add(moved);
      delays.execute(() -> startDelayed(moved, innerCall));
      if (!life.isOpen()) {
        expireDelayed();
      }
    } else {
      enter(moved);
      try {
        moved.start(innerCall);
      } catch (RuntimeException e) {
        left(moved);
        throw e;
      }
    }
    if (closes) {
      close();
    }
    return moved.task();
  }

  private void enter(FaultyTransfer moved) {
    open.add(moved);
    moved.task().whenTerminal(() -> left(moved));
  }

  private void left(FaultyTransfer moved) {
    open.remove(moved);
    moved.left.countDown();
  }

  private @Nullable ShardOutcome[] outcomes(Call call, int number, Transfer transfer) {
    @Nullable ShardOutcome[] planned = new @Nullable ShardOutcome[transfer.shardCount()];
    for (int shard = 0; shard < planned.length; shard++) {
      if (plan.strikes(call, Fault.FAIL, number, shard)) {
        planned[shard] = ShardOutcome.FAILED;
      } else if (call == Call.DUMP) {
        planned[shard] = drops(transfer, shard, number) ? ShardOutcome.OK : null;
      } else if (plan.strikes(call, Fault.MISS, number, shard)) {
        planned[shard] = ShardOutcome.MISSING;
      } else if (plan.strikes(call, Fault.CORRUPT, number, shard)) {
        planned[shard] = ShardOutcome.CORRUPT;
      }
    }
    return planned;
  }

  /** A block is lost with all shards that come until a flush has said so. */
  private boolean drops(Transfer transfer, int shard, int number) {
    if (!plan.isPlanned(Call.DUMP, Fault.DROP)) {
      return false;
    }
    BlockIds ids = transfer.ids();
    String id = ids.hex(shard);
    synchronized (dropped) {
      if (dropped.contains(id)) {
        return true;
      }
      boolean drop =
          plan.strikes(Call.DUMP, Fault.DROP, number, ids.low(shard))
              && inner.lookup(ids.slice(shard, shard + 1)).isEmpty();
      if (drop) {
        dropped.add(id);
      }
      return drop;
    }
  }

  private void startDelayed(FaultyTransfer moved, Function<Transfer, Task> innerCall) {
    if (!delayed.remove(moved)) {
      return;
    }
    try {
      moved.start(innerCall);
    } catch (RuntimeException e) {
      moved.endAll(ShardOutcome.FAILED, e);
    }
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    life.requireOpen();
    FlushResult flushed = inner.flush(timeout);
    BlockIds lost;
    synchronized (dropped) {
      lost = BlockIds.ofHex(List.copyOf(dropped));
      dropped.clear();
    }
    if (lost.isEmpty()) {
      return flushed;
    }
    Throwable cause = flushed.cause();
    return new FlushResult(
        flushed.pendingBlocks(),
        lost,
        flushed.failedCount() + lost.size(),
        cause != null ? cause : new StoreException("injected fault: dumps dropped by " + this));
  }

  @Override
  public void close() {
    boolean wasOpen = life.closed();
    expireDelayed();
    inner.close();
    awaitOpen();
    if (wasOpen) {
      int number = plan.next(Call.CLOSE);
      if (plan.strikes(Call.CLOSE, Fault.THROW, number, 0)) {
        throw injected(Call.CLOSE, number);
      }
    }
  }

  private void expireDelayed() {
    for (FaultyTransfer waiting : List.copyOf(delayed)) {
      if (delayed.remove(waiting)) {
        waiting.endAll(ShardOutcome.EXPIRED, new StoreClosedException(name()));
      }
    }
  }

  /** What was begun by others ends soon, as the wrapped store is closed; they may not have said so. */
  private void awaitOpen() {
    try {
      for (FaultyTransfer moved : List.copyOf(open)) {
        if (!moved.left.await(LONGEST_CLOSE.toNanos(), TimeUnit.NANOSECONDS)) {
          throw new StoreTimeoutException(
              moved.task() + " has not completed when " + this + " closes");
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private StoreException injected(Call call, int number) {
    return new StoreException(site(call, number));
  }

  private String site(Call call, int number) {
    return "injected fault at " + call + " " + number + " of " + this;
  }

  @Override
  public String toString() {
    return "FaultyStore[" + inner.name() + ", seed " + plan.seed() + "]";
  }
}
