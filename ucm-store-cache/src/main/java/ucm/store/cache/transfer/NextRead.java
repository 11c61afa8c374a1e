package ucm.store.cache.transfer;

import org.jspecify.annotations.Nullable;
import ucm.api.QueueFullException;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;

/**
 * Shards on their way from the next stage into slots, all in one transfer.
 *
 * <p>A shard that arrives is copied on to the engine at once, on the next stage's thread, while its bytes
 * are hot in that processor's cache; then look-ups find it. A shard that does not arrive is forgotten,
 * and its slot is reused only when the next stage's task has completed, so that no late read lands in
 * the bytes of another shard.
 */
final class NextRead implements ShardListener {

  private static final int DONE = -1;

  private final CacheRuntime cache;
  private final LoadTask work;
  private final int[] shards;
  // A slot is DONE where its reference was given back.
  private final int[] slots;

  private NextRead(LoadTask work, int[] shards, int[] slots) {
    this.cache = work.cache;
    this.work = work;
    this.shards = shards;
    this.slots = slots;
  }

  /** Starts to read shards of a load into the slots they reserved; both arrays are its own then. */
  static void start(LoadTask work, int[] shards, int[] slots) {
    NextRead read = new NextRead(work, shards, slots);
    read.submit(work.onward(shards, slots, 0, slots.length, read));
  }

  private void submit(Transfer transfer) {
    if (!cache.traffic.begin()) {
      loseAll(ShardOutcome.FAILED, new StoreClosedException("Cache"));
      return;
    }
    Task started;
    try {
      started = cache.requireNext().load(transfer);
    } catch (RuntimeException e) {
      cache.metrics.nextFailures.add(slots.length);
      loseAll(e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED, e);
      cache.traffic.end();
      return;
    }
    started.whenTerminal(() -> ended(started.result()));
  }

  private void loseAll(ShardOutcome outcome, RuntimeException cause) {
    for (int i = 0; i < slots.length; i++) {
      lost(i, outcome, cause);
    }
  }

  /** The next stage moved a shard, or will not. */
  @Override
  public void shardEnded(Transfer transfer, int i, ShardOutcome outcome) {
    if (outcome == ShardOutcome.OK) {
      arrived(i);
    } else if (outcome == ShardOutcome.MISSING) {
      cache.pool.notFilled(slots[i], outcome, null);
      work.endUntaken(shards[i], outcome, null);
    }
    // What else may have gone wrong is told with its cause when the task has completed.
  }

  /** The next stage's task has completed. */
  private void ended(TransferResult result) {
    for (int i = 0; i < slots.length; i++) {
      if (slots[i] == DONE) {
        continue;
      }
      ShardOutcome outcome = result.outcome(i);
      if (outcome == ShardOutcome.OK) {
        arrived(i);
      } else if (outcome == ShardOutcome.MISSING) {
        lost(i, outcome, null);
      } else {
        cache.metrics.nextFailures.increment();
        lost(i, outcome, result.cause());
      }
    }
    cache.traffic.end();
  }

  private void arrived(int i) {
    int slot = slots[i];
    slots[i] = DONE;
    work.arrived(shards[i], slot, true);
  }

  private void lost(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    int slot = slots[i];
    slots[i] = DONE;
    cache.pool.notFilled(slot, outcome, cause);
    cache.pool.release(slot);
    work.endUntaken(shards[i], outcome, cause);
  }
}
