package ucm.store.file.tier;

import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.MemoryStore;

/** A next stage that works, fails or hangs, as a test says. */
final class SwitchedStage extends ForwardingStore {

  /** How it behaves. */
  enum State {
    UP,
    /** Loads and dumps fail, and nothing is found. */
    FAILING,
    /** Loads and dumps do not end, and look-ups do not return, until {@link #release}. */
    HANGING
  }

  final AtomicInteger loads = new AtomicInteger();
  final AtomicInteger dumps = new AtomicInteger();
  final AtomicInteger lookups = new AtomicInteger();
  volatile State state = State.UP;

  private final Store inner;
  private final CountDownLatch released = new CountDownLatch(1);
  private final List<TransferTask> hanging = new CopyOnWriteArrayList<>();

  SwitchedStage(MemoryStore.Volume volume) {
    inner = new MemoryStore(volume);
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
  public BitSet lookup(BlockIds ids) {
    lookups.incrementAndGet();
    hang();
    return state == State.UP ? inner.lookup(ids) : new BitSet();
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return lookup(ids).nextClearBit(0) - 1;
  }

  private void hang() {
    try {
      if (state == State.HANGING) {
        released.await();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public Task load(Transfer transfer) {
    loads.incrementAndGet();
    return state == State.UP ? inner.load(transfer) : notMoved(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    dumps.incrementAndGet();
    return state == State.UP ? inner.dump(transfer) : notMoved(transfer);
  }

  private Task notMoved(Transfer transfer) {
    TransferTask task = new TransferTask(0, transfer);
    if (state == State.HANGING) {
      hanging.add(task);
    } else {
      fail(task);
    }
    return task;
  }

  private static void fail(TransferTask task) {
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      task.end(shard, ShardOutcome.FAILED, new StoreException("the stage is switched off"));
    }
  }

  /** Ends what hangs. */
  void release() {
    released.countDown();
    state = State.UP;
    hanging.forEach(SwitchedStage::fail);
    hanging.clear();
  }

  @Override
  public void close() {
    release();
    super.close();
  }
}
