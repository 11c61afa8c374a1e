package ucm.dist;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.api.BlockLayout;

/**
 * What copying alone can do: the pieces of some blocks, from where an engine has them (tensor by
 * tensor) to where a pool has them (block by block), by {@code memcpy} on several threads. Memory is
 * touched beforehand and freed by {@link #close}.
 */
final class CopyLimit implements AutoCloseable {

  private final Arena arena = Arena.ofShared();
  private final BlockLayout layout;
  private final int blocks;
  private final BenchThreads threads;
  private final MemorySegment engine;
  private final MemorySegment pool;

  CopyLimit(BlockLayout layout, int blocks, BenchThreads threads) {
    this.layout = layout;
    this.blocks = blocks;
    this.threads = threads;
    this.engine = arena.allocate(blocks * layout.blockSize(), 4096);
    this.pool = arena.allocate(blocks * layout.blockSize(), 4096);
    engine.fill((byte) 1);
    pool.fill((byte) 2);
  }

  /** Copies all blocks once; gigabytes per second. */
  double gigabytesPerSecond() throws InterruptedException {
    long nanos = threads.time(this::copy);
    return (double) blocks * layout.blockSize() / nanos;
  }

  private void copy(int thread) {
    for (int block = thread; block < blocks; block += threads.count()) {
      long to = block * layout.blockSize();
      for (int shard = 0; shard < layout.shardCount(); shard++) {
        for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
          long size = layout.tensorSize(tensor);
          long region = shard * layout.shardSize() + layout.tensorOffset(tensor);
          MemorySegment.copy(engine, blocks * region + block * size, pool, to, size);
          to += size;
        }
      }
    }
  }

  @Override
  public void close() {
    arena.close();
  }
}
