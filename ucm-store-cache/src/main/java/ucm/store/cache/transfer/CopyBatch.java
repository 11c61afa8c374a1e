package ucm.store.cache.transfer;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;
import ucm.platform.device.DeviceBatch;
import ucm.platform.device.DeviceCopies;
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

  /** Stands for a shard that is done with, and for its slot. */
  static final int ENDED = -1;

  // So that the threads end at about the same time.
  private static final int RUNS_PER_THREAD = 8;
  private static final int MAX_RUN = 32;
  private static final long MAX_RUN_BYTES = 1 << 20;

  final CacheTask task;
  final CacheRuntime cache;

  /** The shards, and the slot of each; one who copies them looks at those of his run only. */
  final int[] shards;

  final int[] slots;

  private final int run;

  /**
   * A batch of shards.
   *
   * @param shards the batch's own, as are the slots
   * @param ready how many of them are there
   */
  CopyBatch(CacheTask task, int[] shards, int[] slots, int ready) {
    super(ready);
    this.task = task;
    this.cache = task.cache;
    this.shards = shards;
    this.slots = slots;
    int balanced = Math.min(MAX_RUN, shards.length / (RUNS_PER_THREAD * cache.copyThreads));
    long shardSize = task.transfer.layout().shardSize();
    this.run = Math.clamp(MAX_RUN_BYTES / shardSize, 1, Math.max(1, balanced));
  }

  @Override
  public final int size() {
    return Math.ceilDiv(shards.length, run);
  }

  @Override
  protected final int run() {
    return run;
  }

  @Override
  protected final long event() {
    return task.transfer.event();
  }

  @Override
  public final void run(int index) {
    int from = index * run;
    int to = Math.min(shards.length, from + run);
    begin(from, to);
    try {
      copy(from, to);
    } catch (RuntimeException | Error e) {
      // Out of memory, for example: these shards are lost, the thread goes on with others.
      fail(from, to, e, true);
    }
    end(from, to);
  }

  @Override
  protected final void begin(int from, int to) {
    for (int i = from; i < to; i++) {
      if (!task.take(shards[i])) {
        giveUp(i, task.expiry(), true);
      }
    }
  }

  /** Copies what was begun, on this thread. */
  private void copy(int from, int to) {
    for (int i = from; i < to; i++) {
      if (shards[i] == ENDED) {
        continue;
      }
      try {
        cache.memory.copy(task.transfer, shards[i], slots[i], task.isDump);
      } catch (RuntimeException | Error e) {
        // The engine's memory is gone, say: the shard fails, and the copy thread lives on.
        fail(i, e, true);
      }
    }
  }

  @Override
  protected final void queue(DeviceCopies copies, int from, int to) {
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        copies.add(task.transfer, shards[i], slots[i], task.isDump);
      }
    }
  }

  @Override
  protected final void fail(int from, int to, Throwable cause, boolean done) {
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        fail(i, cause, done);
      }
    }
  }

  private void fail(int index, Throwable cause, boolean done) {
    int shard = shards[index];
    giveUp(index, cause, done);
    task.finish(shard, ShardOutcome.FAILED, cause);
  }

  /** Gives a slot back, if nothing touches it any more, and calls it and its shard {@link #ENDED}. */
  private void giveUp(int index, @Nullable Throwable cause, boolean done) {
    int shard = shards[index];
    int slot = slots[index];
    shards[index] = ENDED;
    slots[index] = ENDED;
    givenUp(shard, slot, cause);
    if (done) {
      cache.pool.release(slot);
    }
  }

  /** A shard is not copied; its slot is still referenced. */
  void givenUp(int shard, int slot, @Nullable Throwable cause) {}

  /** How many bytes of a run were copied well. */
  final long copiedBytes(int from, int to) {
    int copied = 0;
    for (int i = from; i < to; i++) {
      copied += shards[i] == ENDED ? 0 : 1;
    }
    return copied * task.transfer.layout().shardSize();
  }

  /** Ends well those shards of a run that have not ended. */
  final void finishWell(int from, int to) {
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        task.finish(shards[i], ShardOutcome.OK, null);
      }
    }
  }
}
