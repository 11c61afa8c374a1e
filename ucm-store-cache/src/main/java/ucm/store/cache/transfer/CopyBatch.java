package ucm.store.cache.transfer;

import ucm.platform.device.DeviceBatch;
import ucm.platform.thread.ShardWorkers;

/**
 * Shards to be copied by the copy threads, a run of neighbours at a time.
 *
 * <p>Hot path. An atomic operation right after a copy waits until the stores of the copy have left the
 * processor's store buffer, some 300 ns each; and threads that take turns shard by shard share the cache lines
 * of all states and counters. So a run is worked through in phases: all shards are begun, all are copied
 * with nothing atomic in between, then all slots go back under one lock, then all shards end. A
 * caller that waits for the task finds the pool settled.
 *
 * <p>Where the engine's memory is a device's, the copies of a run are queued with the device instead
 * ({@link #queue}), and the run ends when they are done; see {@link DeviceBatch}.
 */
abstract class CopyBatch extends DeviceBatch implements ShardWorkers.Batch {

  // So that the threads end at about the same time.
  private static final int RUNS_PER_THREAD = 8;
  private static final int MAX_RUN = 32;
  private static final long MAX_RUN_BYTES = 1 << 20;

  /** The shards; one who copies them looks at those of his run only. */
  final ShardSlots held;

  private final int count;
  private final int run;

  /**
   * A batch of shards.
   *
   * @param held those that are there
   * @param count how many there will be
   * @param shardSize bytes of each
   * @param threads how many threads may work on it
   */
  CopyBatch(ShardSlots held, int count, long shardSize, int threads) {
    super(held.size());
    this.held = held;
    this.count = count;
    int balanced = Math.min(MAX_RUN, count / (RUNS_PER_THREAD * threads));
    this.run = Math.clamp(MAX_RUN_BYTES / shardSize, 1, Math.max(1, balanced));
  }

  /** How many shards. */
  final int count() {
    return count;
  }

  @Override
  public final int size() {
    return Math.ceilDiv(count, run);
  }

  @Override
  protected final int run() {
    return run;
  }

  @Override
  public final void run(int index) {
    int from = index * run;
    int to = Math.min(count, from + run);
    begin(from, to);
    try {
      copy(from, to);
    } catch (RuntimeException | Error e) {
      // Out of memory, for example: these shards are lost, the thread goes on with others.
      fail(from, to, e, true);
    }
    end(from, to);
  }

  /** Whose shards they are. */
  abstract CacheTask work();

  @Override
  protected final long event() {
    return work().transfer.event();
  }

  /** Copies what was begun, on this thread. Must not throw. */
  abstract void copy(int from, int to);
}
