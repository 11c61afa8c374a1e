package ucm.store.cache;

import ucm.store.common.ShardWorkers;

/**
 * Shards to be copied by the copy threads, a run of neighbours at a time.
 *
 * <p>Hot path. An atomic operation right after a copy waits until the stores of the copy have left the
 * processor's store buffer, some 300 ns each; and threads that take turns shard by shard share the cache lines
 * of all states and counters. So a run is worked through in phases: all shards are begun, all are copied
 * with nothing atomic in between, then all slots go back under one lock, then all shards end. Whoever
 * waits for the task finds the pool settled.
 *
 * <p>Where the engine's memory is a device's, the copies of a run are queued with the device instead
 * ({@link #queue}), and the run ends when they are done; see {@link DeviceQueue}.
 */
abstract class CopyBatch implements ShardWorkers.Batch {

  // So that the threads end at about the same time.
  private static final int RUNS_PER_THREAD = 8;
  private static final int MAX_RUN = 32;
  private static final long MAX_RUN_BYTES = 1 << 20;

  private final int count;
  private final int run;

  // For DeviceQueue, guarded by its lock: shards to be had, shards given out, whether it is in the
  // queue.
  int ready;
  int claimed;
  boolean queued;

  /**
   * A batch of shards.
   *
   * @param count how many shards
   * @param shardSize bytes of each
   * @param threads how many threads may work on it
   */
  CopyBatch(int count, long shardSize, int threads) {
    this.count = count;
    this.ready = count;
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

  /** The most shards of a run. */
  final int run() {
    return run;
  }

  @Override
  public final void run(int index) {
    int from = index * run;
    int to = Math.min(count, from + run);
    begin(from, to);
    copy(from, to);
    end(from, to);
  }

  /** Whose shards they are. */
  abstract Work work();

  /** Begins the shards of a run, the last one exclusive; gives up those that have expired. */
  abstract void begin(int from, int to);

  /** Copies what was begun, on this thread. Must not throw. */
  abstract void copy(int from, int to);

  /** Queues the copies of what was begun. May throw what the device says. */
  abstract void queue(DeviceCopies copies, int from, int to);

  /**
   * Gives up what was begun.
   *
   * @param done whether nobody touches the slots any more; else nobody shall get them again
   */
  abstract void fail(int from, int to, Throwable cause, boolean done);

  /** Ends what was begun and not given up. */
  abstract void end(int from, int to);
}
