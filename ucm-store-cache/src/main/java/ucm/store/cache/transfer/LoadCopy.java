package ucm.store.cache.transfer;

import ucm.api.ShardOutcome;
import ucm.platform.device.DeviceCopies;

/** Shards of a load that lie in slots, each slot referenced, on their way into the engine's memory. */
final class LoadCopy extends CopyBatch {

  private static final int ENDED = -1;

  private final LoadTask load;

  /** Takes over shards that are there. */
  LoadCopy(LoadTask load, ShardSlots held) {
    this(load, held, held.size());
  }

  private LoadCopy(LoadTask load, ShardSlots held, int count) {
    super(held, count, load.transfer.layout().shardSize(), load.cache.copyThreads);
    this.load = load;
  }

  /** One that shards are put into as they arrive. */
  static LoadCopy ofArrivals(LoadTask load) {
    return new LoadCopy(load, ShardSlots.fixed(load.shardCount), load.shardCount);
  }

  @Override
  protected void put(int shard, int slot) {
    held.add(shard, slot);
  }

  @Override
  CacheTask work() {
    return load;
  }

  @Override
  protected void begin(int from, int to) {
    int[] shards = held.shards;
    for (int i = from; i < to; i++) {
      if (!load.take(shards[i])) {
        shards[i] = ENDED;
      }
    }
  }

  @Override
  void copy(int from, int to) {
    int[] shards = held.shards;
    for (int i = from; i < to; i++) {
      if (shards[i] == ENDED) {
        continue;
      }
      Throwable fault = load.copyOut(shards[i], held.slots[i]);
      if (fault != null) {
        fail(i, fault, true);
      }
    }
  }

  @Override
  protected void queue(DeviceCopies copies, int from, int to) {
    int[] shards = held.shards;
    for (int i = from; i < to; i++) {
      if (shards[i] != ENDED) {
        copies.fromSlot(held.slots[i], load.transfer, shards[i]);
      }
    }
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    for (int i = from; i < to; i++) {
      if (held.shards[i] != ENDED) {
        fail(i, cause, done);
      }
    }
  }

  @Override
  protected void end(int from, int to) {
    int[] shards = held.shards;
    int copied = 0;
    for (int i = from; i < to; i++) {
      copied += shards[i] == ENDED ? 0 : 1;
    }
    load.countLoaded(copied);
    load.cache.pool.release(held.slots, from, to);
    load.finishWell(shards, from, to);
  }

  private void fail(int index, Throwable cause, boolean done) {
    int shard = held.shards[index];
    if (done) {
      load.cache.pool.release(held.slots[index]);
    }
    held.slots[index] = ENDED;
    held.shards[index] = ENDED;
    load.finish(shard, ShardOutcome.FAILED, cause);
  }
}
