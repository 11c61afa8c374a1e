package ucm.store.fake;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * Keeps nothing: a dump ends well at once and is forgotten, a look-up finds nothing, a load misses.
 * {@code Cache|Empty} is a cache in memory without storage.
 *
 * <p>It accepts blocks of any layout, in memory of any device. Nothing becomes durable, and {@link
 * #flush} has nothing to wait for.
 */
@StoreName("Empty")
public final class EmptyStore implements Store {

  private final StoreLife life = new StoreLife("Empty");
  private final AtomicLong taskNumbers = new AtomicLong();
  private volatile boolean scheduler;

  /** A store that is not configured yet. */
  public EmptyStore() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of(CommonKeys.DEVICE_ID);
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
    scheduler = config.get(CommonKeys.DEVICE_ID) < 0;
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return LastStage.refusal("Empty", next);
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    try {
      LastStage.require("Empty", context);
    } catch (StoreException e) {
      close();
      throw e;
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    life.requireOpen();
    return new BitSet();
  }

  @Override
  public Task load(Transfer transfer) {
    return endAll(transfer, ShardOutcome.MISSING);
  }

  @Override
  public Task dump(Transfer transfer) {
    return endAll(transfer, ShardOutcome.OK);
  }

  private Task endAll(Transfer transfer, ShardOutcome outcome) {
    life.requireOpen();
    if (scheduler) {
      throw new StoreException("Empty has the scheduler role (device_id -1) and moves no data");
    }
    TransferTask task = new TransferTask(taskNumbers.incrementAndGet(), transfer);
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      task.end(shard, outcome, null);
    }
    return task;
  }

  @Override
  public FlushResult flush(Duration timeout) {
    life.requireOpen();
    return FlushResult.clean();
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    life.requireOpen();
    return FakeStore.all(ids);
  }

  @Override
  public void close() {
    life.closed();
  }

  @Override
  public String toString() {
    return life.toString();
  }
}
