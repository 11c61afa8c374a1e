package ucm.store.cache.transfer;

import org.jspecify.annotations.Nullable;

/** Shards of a load that lie in slots, each slot referenced, on their way into the engine's memory. */
final class LoadCopy extends CopyBatch {

  /** Takes over shards that are there. */
  LoadCopy(LoadTask load, int[] shards, int[] slots) {
    super(load, shards, slots, shards.length);
  }

  /** A batch that the shards of a load are put into as they arrive. */
  LoadCopy(LoadTask load) {
    super(load, new int[load.shardCount], new int[load.shardCount], 0);
  }

  @Override
  protected void put(int shard, int slot) {
    shards[ready()] = shard;
    slots[ready()] = slot;
  }

  @Override
  void giveUp(int index, @Nullable Throwable cause, boolean done) {
    if (done) {
      cache.pool.release(slots[index]);
    }
    slots[index] = ENDED;
    shards[index] = ENDED;
  }

  @Override
  protected void end(int from, int to) {
    cache.metrics.loadBytes.add(copiedBytes(from, to));
    cache.pool.release(slots, from, to);
    finishWell(from, to);
  }
}
