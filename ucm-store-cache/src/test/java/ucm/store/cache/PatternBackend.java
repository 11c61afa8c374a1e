package ucm.store.cache;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import ucm.api.BlockIds;
import ucm.api.ConfigKey;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.common.CpuAffinity;
import ucm.store.common.ShardWorkers;
import ucm.testkit.BlockBytes;

/**
 * A backend that several processes may each have one of and that are the same: it has every block whose
 * id is even, with the bytes of {@link BlockBytes}, and takes dumps of all others, says that they are durable, and forgets them.
 * A dump with wrong bytes fails, as it shows that a slot was changed under the writer.
 */
@StoreName("Pattern")
final class PatternBackend implements Store {

  private final AtomicLong tasks = new AtomicLong();
  private final AtomicLong wrong = new AtomicLong();
  private final int mostSpins;
  private final ShardWorkers workers =
      new ShardWorkers(
          "pattern", 2, new ShardWorkers.Limits(1 << 20, "-", 1 << 30, "-"), CpuAffinity.ANY);

  /**
   * A backend that takes its time.
   *
   * @param mostSpins it is idle up to so often for each shard
   */
  PatternBackend(int mostSpins) {
    this.mostSpins = mostSpins;
  }

  /** Whether the backend has a block. */
  static boolean has(BlockIds ids, int i) {
    return (ids.low(i) & 1) == 0;
  }

  /** Dumped shards whose bytes were wrong. */
  long wrong() {
    return wrong.get();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of();
  }

  @Override
  public void configure(StoreConfig config) {}

  @Override
  public void open(StoreContext context) {}

  @Override
  public BitSet lookup(BlockIds ids) {
    BitSet found = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, has(ids, i));
    }
    return found;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    int next = 0;
    while (next < ids.size() && has(ids, next)) {
      next++;
    }
    return next - 1;
  }

  @Override
  public void prefetch(BlockIds ids) {}

  @Override
  public Task load(Transfer transfer) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    each(transfer, i -> load(transfer, task, i));
    return task;
  }

  @Override
  public Task dump(Transfer transfer) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    each(transfer, i -> dump(transfer, task, i));
    return task;
  }

  @Override
  public FlushResult flush(Duration timeout) {
    return FlushResult.clean();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    BitSet all = new BitSet();
    all.set(0, ids.size());
    return all;
  }

  @Override
  public void close() {
    workers.close();
  }

  private void load(Transfer transfer, TransferTask task, int shard) {
    idle();
    if (!has(transfer.ids(), shard)) {
      task.end(shard, ShardOutcome.MISSING, null);
      return;
    }
    BlockBytes.fill(
        slot(transfer, shard),
        high(transfer, shard),
        low(transfer, shard),
        transfer.shardIndex(shard),
        0);
    task.ok(shard);
  }

  private void dump(Transfer transfer, TransferTask task, int shard) {
    idle();
    long at =
        BlockBytes.firstWrong(
            slot(transfer, shard),
            high(transfer, shard),
            low(transfer, shard),
            transfer.shardIndex(shard),
            0);
    if (at >= 0) {
      wrong.incrementAndGet();
    }
    task.ok(shard);
  }

  private void idle() {
    int spins = mostSpins == 0 ? 0 : ThreadLocalRandom.current().nextInt(mostSpins);
    for (int i = 0; i < spins; i++) {
      Thread.onSpinWait();
    }
  }

  private void each(Transfer transfer, IntConsumer action) {
    workers.submit(
        new ShardWorkers.Batch() {
          @Override
          public int size() {
            return transfer.shardCount();
          }

          @Override
          public void run(int shard) {
            action.accept(shard);
          }
        });
  }

  private static MemorySegment slot(Transfer transfer, int shard) {
    return transfer
        .region(shard, 0)
        .segment()
        .asSlice(transfer.offset(shard, 0), transfer.layout().shardSize());
  }

  private static long high(Transfer transfer, int shard) {
    return transfer.ids().high(shard);
  }

  private static long low(Transfer transfer, int shard) {
    return transfer.ids().low(shard);
  }
}
