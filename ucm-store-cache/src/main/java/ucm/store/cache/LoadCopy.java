package ucm.store.cache;

import ucm.api.ShardOutcome;
import ucm.store.common.DeviceCopies;

/** Shards of a load that lie in slots, each slot referenced, on their way into the engine's memory. */
final class LoadCopy extends CopyBatch {

  private static final int ENDED = -1;

  private final LoadWork load;
  private final int[] shards;
  private final int[] slots;

  /**
   * Takes over arrays.
   *
   * @param shards indices into the load's transfer
   * @param slots the slot of each
   * @param count how many of them count
   */
  LoadCopy(LoadWork load, int[] shards, int[] slots, int count) {
    this(load, shards, slots, count, count);
  }

  private LoadCopy(LoadWork load, int[] shards, int[] slots, int count, int ready) {
    super(count, ready, load.transfer.layout().shardSize(), load.cache.copyThreads);
    this.load = load;
    this.shards = shards;
    this.slots = slots;
  }

  /** One that shards are put into as they arrive. */
  static LoadCopy empty(LoadWork load, int[] shards, int[] slots) {
    return new LoadCopy(load, shards, slots, shards.length, 0);
  }

  @Override
  protected void put(int shard, int slot) {
    shards[ready()] = shard;
    slots[ready()] = slot;
  }

  @Override
  Work work() {
    return load;
  }

  @Override
  protected void begin(int from, int to) {
    for (int i = from; i < to; i++) {
      if (!load.begin(shards[i])) {
        shards[i] = ENDED;
      }
    }
  }

  @Override
  void copy(int from, int to) {
    for (int i = from; i < to; i++) {
      if (shards[i] == ENDED) {
        continue;
      }
      Throwable fault = load.copyOut(shards[i], slots[i]);
      if (fault != null) {
        fail(i, fault, true);
      }
    }
  }

  @Override
  protected void queue(DeviceCopies copies, int from, int to) {
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        copies.fromSlot(slots[i], load.transfer, shards[i]);
      }
    }
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        fail(i, cause, done);
      }
    }
  }

  @Override
  protected void end(int from, int to) {
    int copied = 0;
    for (int i = from; i < to; i++) {
      copied += shards[i] == ENDED ? 0 : 1;
    }
    load.countLoaded(copied);
    load.cache.pool.release(slots, from, to);
    load.finishWell(shards, from, to);
  }

  private void fail(int index, Throwable cause, boolean done) {
    int shard = shards[index];
    if (done) {
      load.cache.pool.release(slots[index]);
    }
    slots[index] = BlockTable.NONE;
    shards[index] = ENDED;
    load.finish(shard, ShardOutcome.FAILED, cause);
  }
}
