package ucm.store.cache.transfer;

import java.util.Objects;
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
final class NextRead implements ShardListener, Runnable {

  private static final int DONE = -1;

  private final CacheRuntime cache;
  private final @Nullable LoadTask work;
  // A slot is DONE where its reference was given back.
  private final ShardSlots held;
  private @Nullable Task task;

  private NextRead(CacheRuntime cache, @Nullable LoadTask work, ShardSlots held) {
    this.cache = cache;
    this.work = work;
    this.held = held;
  }

  /** Starts to read shards of a load into the slots they reserved. */
  static void start(CacheRuntime cache, LoadTask work, ShardSlots held) {
    NextRead read = new NextRead(cache, work, held);
    read.submit(held.onward(cache.memory, work.transfer, 0, held.size(), read));
  }

  /**
   * Starts to read shards that no task waits for into slots reserved for them.
   *
   * @param builder names the shards and their slots
   */
  static void prefetch(CacheRuntime cache, Transfer.Builder builder, ShardSlots held) {
    NextRead read = new NextRead(cache, null, held);
    read.submit(builder.build(read));
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
      cache.metrics.nextFailures.add(held.size());
      loseAll(e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED, e);
      cache.traffic.end();
      return;
    }
    task = started;
    started.whenTerminal(this);
  }

  private void loseAll(ShardOutcome outcome, RuntimeException cause) {
    for (int i = 0; i < held.size(); i++) {
      lost(i, outcome, cause);
    }
  }

  /** The next stage moved a shard, or will not. */
  @Override
  public void shardEnded(Transfer transfer, int i, ShardOutcome outcome) {
    if (outcome == ShardOutcome.OK) {
      arrived(i);
    } else if (outcome == ShardOutcome.MISSING) {
      cache.pool.notFilled(held.slots[i], outcome, null);
      if (work != null) {
        work.endUntaken(held.shards[i], outcome, null);
      }
    }
    // What else may have gone wrong is told with its cause when the task has completed.
  }

  /** The next stage's task has completed. */
  @Override
  public void run() {
    TransferResult result = Objects.requireNonNull(task).result();
    for (int i = 0; i < held.size(); i++) {
      if (held.slots[i] == DONE) {
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
    int slot = held.slots[i];
    held.slots[i] = DONE;
    if (work == null) {
      cache.pool.filled(slot, true);
    } else {
      work.arrived(held.shards[i], slot);
    }
  }

  private void lost(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    int slot = held.slots[i];
    held.slots[i] = DONE;
    cache.pool.notFilled(slot, outcome, cause);
    cache.pool.release(slot);
    if (work != null) {
      work.endUntaken(held.shards[i], outcome, cause);
    }
  }
}
