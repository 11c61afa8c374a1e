package ucm.bench.measure;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.api.BlockLayout;

/**
 * What copying alone can do: the segments of some blocks, from where an engine has them (tensor by
 * tensor) to where a pool has them (block by block), by {@code memcpy} on several threads, in the same
 * steps as the tasks of the store. Memory is touched beforehand and freed by {@link #close}.
 */
public final class CopyLimit implements AutoCloseable {

  private final Arena arena = Arena.ofShared();
  private final BenchPlan plan;
  private final BlockLayout layout;
  private final BenchThreads threads;
  private final MemorySegment engine;
  private final MemorySegment pool;

  public CopyLimit(BenchPlan plan, BenchThreads threads) {
    this.plan = plan;
    this.layout = plan.layout();
    this.threads = threads;
    this.engine = arena.allocate(plan.roundBytes(), 4096);
    this.pool = arena.allocate(plan.roundBytes(), 4096);
    engine.fill((byte) 1);
    pool.fill((byte) 2);
  }

  /** Copies all blocks once; gigabytes per second. */
  public double gigabytesPerSecond() throws InterruptedException {
    return (double) plan.roundBytes() / threads.time(plan, this::copy);
  }

  private void copy(BenchStep step, int thread) {
    boolean all = step.shard() == BenchStep.ALL_SHARDS;
    int first = all ? 0 : step.shard();
    int end = all ? layout.shardCount() : step.shard() + 1;
    for (int block = step.from() + thread; block < step.to(); block += threads.count()) {
      for (int shard = first; shard < end; shard++) {
        copy(block, shard);
      }
    }
  }

  private void copy(int block, int shard) {
    long inBlock = shard * layout.shardSize();
    for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
      long size = layout.tensorSize(tensor);
      long region = plan.blocks() * (inBlock + layout.tensorOffset(tensor));
      long to = block * layout.blockSize() + inBlock + layout.tensorOffset(tensor);
      MemorySegment.copy(engine, region + block * size, pool, to, size);
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
