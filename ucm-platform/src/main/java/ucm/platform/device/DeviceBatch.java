package ucm.platform.device;

/**
 * Shards that {@link DeviceQueue} copies between slots and memory of a device, a run of neighbours at a
 * time. The methods are called by one thread for each run, first {@link #begin}, then {@link #queue},
 * then, when the copies are done, {@link #fail} if need be, and {@link #end}.
 */
public abstract class DeviceBatch {

  // Guarded by the queue: shards to be had, the first shard that is not given out,
  // whether it is in the queue.
  private int ready;
  int taken;
  boolean queued;

  /**
   * A batch of shards.
   *
   * @param ready how many of them can be copied at once
   */
  protected DeviceBatch(int ready) {
    this.ready = ready;
  }

  /** How many shards can be copied by now; for {@link #put}. */
  protected final int ready() {
    return ready;
  }

  /** The most shards of a run. */
  protected abstract int run();

  /** The event of the device to wait for before the first copy, or 0. */
  protected abstract long event();

  /** Begins the shards of a run, the last one exclusive; gives up those that have timed out. */
  protected abstract void begin(int from, int to);

  /** Queues the copies of what was begun. May throw what the device says. */
  protected abstract void queue(DeviceCopies copies, int from, int to);

  /**
   * Gives up what was begun.
   *
   * @param done whether the slots are no longer touched; otherwise they must not be given out again
   */
  protected abstract void fail(int from, int to, Throwable cause, boolean done);

  /** Ends what was begun and not given up. */
  protected abstract void end(int from, int to);

  /**
   * Keeps a shard that has arrived as the one of index {@link #ready}. Only for batches that are handed
   * in one shard after the other; called under a lock, so does nothing else.
   */
  protected void put(int shard, int slot) {
    throw new IllegalStateException(this + " is handed in whole; found shard " + shard + " alone");
  }

  /** Takes a shard that has arrived. */
  final void arrive(int shard, int slot) {
    put(shard, slot);
    ready++;
  }

  /** Gives out a run; returns its end, exclusive. The batch is out of the queue with its last shard. */
  final int take() {
    taken = Math.min(ready, taken + run());
    queued = taken < ready;
    return taken;
  }
}
