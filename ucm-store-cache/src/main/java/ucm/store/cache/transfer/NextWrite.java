package ucm.store.cache.transfer;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;

/**
 * Shards of a dump on their way from their slots to the next stage, all in one transfer.
 *
 * <p>The slots stay referenced until the next stage's task has completed. A block of which a shard could not
 * be written is dropped whole: it is no hit any more, so that the engine dumps it again, and {@code
 * flush} names it.
 */
final class NextWrite {

  private final CacheRuntime cache;
  private final DumpTask dump;
  private final DumpTask.Copy held;
  private final int from;
  private final int to;

  /** Since when it waits. */
  final long offeredNanos = System.nanoTime();

  /** The shards of a copy from an index on, to another exclusive. */
  NextWrite(DumpTask dump, DumpTask.Copy held, int from, int to) {
    this.cache = dump.cache;
    this.dump = dump;
    this.held = held;
    this.from = from;
    this.to = to;
  }

  long byteSize() {
    return (to - from) * dump.transfer.layout().shardSize();
  }

  /**
   * Hands the shards to the next stage.
   *
   * @return false when the next stage has no room for them now
   */
  boolean submit() {
    Transfer written = dump.onward(held.shards, held.slots, from, to, ShardListener.NONE);
    if (written.shardCount() == 0) {
      end(null, null);
      return true;
    }
    if (!cache.traffic.begin()) {
      end(null, new StoreClosedException("Cache"));
      return true;
    }
    Task started;
    try {
      started = cache.requireNext().dump(written);
    } catch (QueueFullException e) {
      cache.traffic.end();
      return false;
    } catch (RuntimeException e) {
      end(null, e);
      cache.traffic.end();
      return true;
    }
    started.whenTerminal(
        () -> {
          end(started.result(), started.result().cause());
          cache.traffic.end();
        });
    return true;
  }

  private void end(@Nullable TransferResult result, @Nullable Throwable cause) {
    if (result == null || !result.ok()) {
      dropFailed(result, cause);
    }
    cache.pool.release(held.slots, from, to);
    dump.settle(held.shards, from, to);
    cache.writes.ended(byteSize());
  }

  private void dropFailed(@Nullable TransferResult result, @Nullable Throwable cause) {
    BlockIds ids = dump.transfer.ids();
    int position = 0;
    for (int i = from; i < to; i++) {
      if (held.slots[i] == CopyBatch.ENDED) {
        continue;
      }
      int shard = held.shards[i];
      if (result == null || result.outcome(position) != ShardOutcome.OK) {
        cache.metrics.nextFailures.increment();
        cache.pool.drop(ids.high(shard), ids.low(shard));
        dump.failed(shard, cause);
        cache.failedWrites.add(cache.requireNext(), cause);
      }
      position++;
    }
  }
}
