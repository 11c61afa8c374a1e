package ucm.store.cache;

import java.util.Arrays;
import java.util.Objects;
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
 * Shards on their way from the backend into slots, all in one transfer.
 *
 * <p>A shard that arrives is copied on to the engine at once, on the backend's thread, while its bytes
 * are hot in that processor's cache; then everybody finds it. A shard that does not arrive is forgotten,
 * and its slot is used anew only when the backend's task is terminal, so that no late read lands in
 * somebody else's bytes.
 */
final class BackendRead implements ShardListener, Runnable {

  private static final int DONE = -1;

  private final OpenCache cache;
  private final @Nullable LoadWork work;
  private final int[] shards;
  // DONE where the slot's reference was given back.
  private final int[] slots;
  private @Nullable Task task;

  private BackendRead(OpenCache cache, @Nullable LoadWork work, int[] shards, int[] slots) {
    this.cache = cache;
    this.work = work;
    this.shards = shards;
    this.slots = slots;
  }

  /** Starts to read shards of a load into the slots it claimed, both from an index on. */
  static void start(OpenCache cache, LoadWork work, int[] shards, int[] slots, int from, int to) {
    // The load is done with the arrays when there was no hit.
    boolean whole = from == 0 && to == shards.length;
    int[] ownShards = whole ? shards : Arrays.copyOfRange(shards, from, to);
    int[] ownSlots = whole ? slots : Arrays.copyOfRange(slots, from, to);
    Transfer.Builder spare = cache.spareBuilder.getAndSet(null);
    Transfer.Builder builder = spare == null ? Transfer.packed(cache.config.layout()) : spare;
    BlockIds ids = work.transfer.ids();
    // They were put in from the back: turn them, so that the backend reads in order.
    for (int i = 0, j = ownShards.length - 1; i < j; i++, j--) {
      int shard = ownShards[i];
      ownShards[i] = ownShards[j];
      ownShards[j] = shard;
      int slot = ownSlots[i];
      ownSlots[i] = ownSlots[j];
      ownSlots[j] = slot;
    }
    for (int i = 0; i < ownShards.length; i++) {
      int shard = ownShards[i];
      builder
          .shard(ids.high(shard), ids.low(shard), work.transfer.shardIndex(shard))
          .piece(cache.memory.region(ownSlots[i]), cache.memory.offset(ownSlots[i]));
    }
    BackendRead read = new BackendRead(cache, work, ownShards, ownSlots);
    Transfer transfer = builder.build(read);
    cache.spareBuilder.set(builder);
    read.submit(transfer);
  }

  /**
   * Starts to read shards that nobody waits for into slots claimed for them.
   *
   * @param builder names the shards and their slots
   * @param count how many slots count
   */
  static void prefetch(OpenCache cache, Transfer.Builder builder, int[] slots, int count) {
    BackendRead read = new BackendRead(cache, null, new int[0], Arrays.copyOf(slots, count));
    read.submit(builder.build(read));
  }

  private void submit(Transfer transfer) {
    if (!cache.traffic.begin()) {
      loseAll(ShardOutcome.FAILED, new StoreClosedException("Cache"));
      return;
    }
    Task started;
    try {
      started = cache.requireBackend().load(transfer);
    } catch (RuntimeException e) {
      cache.metrics.backendFailures.add(slots.length);
      loseAll(e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED, e);
      cache.traffic.end();
      return;
    }
    task = started;
    started.whenTerminal(this);
  }

  private void loseAll(ShardOutcome outcome, RuntimeException cause) {
    for (int i = 0; i < slots.length; i++) {
      lost(i, outcome, cause);
    }
  }

  /** The backend moved a shard, or will not. */
  @Override
  public void shardEnded(Transfer transfer, int i, ShardOutcome outcome) {
    if (outcome == ShardOutcome.OK) {
      arrived(i);
    } else if (outcome == ShardOutcome.MISSING) {
      cache.pool.notFilled(slots[i], outcome, null);
      if (work != null) {
        work.end(shards[i], outcome, null);
      }
    }
    // What else may have gone wrong is told with its cause when the task is terminal.
  }

  /** The backend's task is terminal. */
  @Override
  public void run() {
    TransferResult result = Objects.requireNonNull(task).result();
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
        cache.metrics.backendFailures.increment();
        lost(i, outcome, result.cause());
      }
    }
    cache.traffic.end();
  }

  private void arrived(int i) {
    int slot = slots[i];
    slots[i] = DONE;
    if (work == null) {
      cache.pool.filled(slot, true);
    } else {
      work.arrived(shards[i], slot);
    }
  }

  private void lost(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    int slot = slots[i];
    slots[i] = DONE;
    cache.pool.notFilled(slot, outcome, cause);
    cache.pool.release(slot);
    if (work != null) {
      work.end(shards[i], outcome, cause);
    }
  }
}
