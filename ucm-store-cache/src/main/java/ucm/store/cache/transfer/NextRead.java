package ucm.store.cache.transfer;

import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.cache.pool.SlotPool.Reservation;

/**
 * Shards on their way from the next stage into slots, all in one transfer.
 *
 * <p>A shard that arrives is copied on to the engine at once, on the next stage's thread, while its bytes
 * are hot in that processor's cache; then look-ups find it. A shard that does not arrive is forgotten,
 * and its slot is reused only when the next stage's task has completed, so that no late read lands in
 * the bytes of another shard.
 */
final class NextRead implements ShardListener {

  private static final Logger LOG = LoggerFactory.getLogger(NextRead.class);
  private static final int DONE = -1;
  private static final int[] NO_SHARDS = {};

  private final CacheRuntime cache;
  private final @Nullable LoadTask work;
  private final int[] shards;
  // A slot is DONE where its reference was given back.
  private final int[] slots;

  private NextRead(CacheRuntime cache, @Nullable LoadTask work, int[] shards, int[] slots) {
    this.cache = cache;
    this.work = work;
    this.shards = shards;
    this.slots = slots;
  }

  /** Starts to read shards of a load into the slots they reserved; both arrays are its own then. */
  static void start(LoadTask work, int[] shards, int[] slots) {
    NextRead read = new NextRead(work.cache, work, shards, slots);
    read.submit(work.onward(shards, slots, 0, slots.length, read));
  }

  /** Starts to read blocks that no task waits for, into no more than half of the slots. */
  static void prefetch(CacheRuntime cache, Store next, BlockIds ids) {
    BlockIds absent = ids.select(0, cache.pool.absent(ids));
    if (absent.isEmpty()) {
      return;
    }
    BitSet present;
    try {
      present = next.lookup(absent);
    } catch (RuntimeException e) {
      LOG.warn("{} did not say which blocks it has; none are prefetched: {}", next, e.toString());
      return;
    }
    int budget = cache.memory.slots() / 2 - cache.pool.referenced();
    int shards = cache.config.layout().shardCount();
    Transfer.Builder builder = Transfer.packed(cache.config.layout());
    int most = Math.max(0, Math.min(budget, present.cardinality() * shards));
    int[] slots = new int[most];
    int reserved = 0;
    for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
      for (int shard = 0; shard < shards && reserved < most; shard++) {
        long reservation =
            cache.pool.reserveForLoad(absent.high(i), absent.low(i), shard, null, 0, true);
        int slot = Reservation.number(reservation);
        if (Reservation.kind(reservation) == Reservation.HIT) {
          cache.pool.release(slot);
        } else if (Reservation.kind(reservation) == Reservation.RESERVED) {
          builder.shard(absent, i, shard).piece(cache.memory.region(), cache.memory.offset(slot));
          slots[reserved++] = slot;
        }
      }
    }
    if (reserved > 0) {
      NextRead read = new NextRead(cache, null, NO_SHARDS, Arrays.copyOf(slots, reserved));
      read.submit(builder.build(read));
    }
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
      if (work != null) {
        work.endUntaken(shards[i], outcome, null);
      }
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
    if (work == null) {
      cache.pool.filled(slot, true);
    } else {
      work.arrived(shards[i], slot, true);
    }
  }

  private void lost(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    int slot = slots[i];
    slots[i] = DONE;
    cache.pool.notFilled(slot, outcome, cause);
    cache.pool.release(slot);
    if (work != null) {
      work.endUntaken(shards[i], outcome, cause);
    }
  }
}
