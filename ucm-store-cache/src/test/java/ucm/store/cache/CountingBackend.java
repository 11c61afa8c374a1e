package ucm.store.cache;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.BlockIds;
import ucm.api.ConfigKey;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.common.CpuAffinity;
import ucm.store.common.ShardWorkers;

/** Copies every shard from or to one buffer with two threads, as fast as memory allows: for speed. */
@StoreName("Counting")
final class CountingBackend implements Store {

  private final AtomicLong tasks = new AtomicLong();
  private final ShardWorkers workers =
      new ShardWorkers(
          "copying", 2, new ShardWorkers.Limits(1 << 20, "-", 1 << 30, "-"), CpuAffinity.ANY);
  private final MemorySegment buffer = Arena.ofAuto().allocate(64 << 20, 4096);

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
    return new BitSet();
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return -1;
  }

  @Override
  public void prefetch(BlockIds ids) {}

  @Override
  public Task load(Transfer transfer) {
    return move(transfer, true);
  }

  @Override
  public Task dump(Transfer transfer) {
    return move(transfer, false);
  }

  private Task move(Transfer transfer, boolean load) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    long size = transfer.layout().shardSize();
    workers.submit(
        new ShardWorkers.Batch() {
          @Override
          public int size() {
            return transfer.shardCount();
          }

          @Override
          public void run(int shard) {
            long own = shard * size % buffer.byteSize();
            MemorySegment slot = transfer.region(shard, 0).segment();
            long at = transfer.offset(shard, 0);
            if (load) {
              MemorySegment.copy(buffer, own, slot, at, size);
            } else {
              MemorySegment.copy(slot, at, buffer, own, size);
            }
            task.ok(shard);
          }
        });
    return task;
  }

  @Override
  public FlushResult flush(Duration timeout) {
    return FlushResult.clean();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return new BitSet();
  }

  @Override
  public void close() {
    workers.close();
  }
}
