package ucm.store.cache;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;

/**
 * Shards of a dump on their way from their slots to the backend, all in one transfer.
 *
 * <p>The slots stay referenced until the backend's task is terminal. A block of which a shard could not
 * be written is dropped whole: it is no hit any more, so that the engine dumps it anew, and {@code
 * flush} names it.
 */
final class BackendWrite implements Runnable {

  private final OpenCache cache;
  private final DumpWork dump;
  private final int[] shards;
  private final int[] slots;
  private final int from;
  private final int to;
  private final long offeredNanos = System.nanoTime();
  private @Nullable Task task;

  /** The shards of a copy, and their slots, from an index on, to another exclusive. */
  BackendWrite(OpenCache cache, DumpWork dump, int[] shards, int[] slots, int from, int to) {
    this.cache = cache;
    this.dump = dump;
    this.shards = shards;
    this.slots = slots;
    this.from = from;
    this.to = to;
  }

  /** Since when it waits. */
  long offeredNanos() {
    return offeredNanos;
  }

  /**
   * Hands the shards to the backend.
   *
   * @param builder empty, and used by one thread only
   * @return false when the backend has no room for them now
   */
  boolean submit(Transfer.Builder builder) {
    Transfer transfer = build(builder);
    if (transfer.shardCount() == 0) {
      end(null, null);
      return true;
    }
    if (!cache.traffic.begin()) {
      end(null, new StoreClosedException("Cache"));
      return true;
    }
    Task started;
    try {
      started = cache.requireBackend().dump(transfer);
    } catch (QueueFullException e) {
      cache.traffic.end();
      return false;
    } catch (RuntimeException e) {
      end(null, e);
      cache.traffic.end();
      return true;
    }
    task = started;
    started.whenTerminal(this);
    return true;
  }

  /** The backend's task is terminal. */
  @Override
  public void run() {
    TransferResult result = Objects.requireNonNull(task).result();
    end(result, result.cause());
    cache.traffic.end();
  }

  private Transfer build(Transfer.Builder builder) {
    BlockIds ids = dump.transfer.ids();
    for (int i = from; i < to; i++) {
      if (slots[i] != DumpCopy.NOT_COPIED) {
        builder
            .shard(ids, shards[i], dump.transfer.shardIndex(shards[i]))
            .piece(cache.memory.region(slots[i]), cache.memory.offset(slots[i]));
      }
    }
    return builder.build();
  }

  private void end(@Nullable TransferResult result, @Nullable Throwable cause) {
    if (result == null || !result.ok()) {
      dropFailed(result, cause);
    }
    for (int i = from; i < to; i++) {
      if (slots[i] != DumpCopy.NOT_COPIED) {
        cache.pool.release(slots[i]);
      }
    }
    dump.settle(to - from);
    cache.writes.ended();
  }

  private void dropFailed(@Nullable TransferResult result, @Nullable Throwable cause) {
    BlockIds ids = dump.transfer.ids();
    int position = 0;
    for (int i = from; i < to; i++) {
      if (slots[i] == DumpCopy.NOT_COPIED) {
        continue;
      }
      if (result == null || result.outcome(position) != ShardOutcome.OK) {
        cache.metrics.backendFailures.increment();
        cache.pool.drop(ids.high(shards[i]), ids.low(shards[i]));
        dump.failed(shards[i], cause);
      }
      position++;
    }
  }
}
