package ucm.store.cache.transfer;

import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.Transfer;
import ucm.store.cache.pool.Reservation;

/**
 * Reads blocks from the next stage into the pool before they are loaded. Best effort: never uses more
 * than half of the slots, and forgets what comes while enough is waiting.
 */
final class Prefetcher {

  private static final Logger LOG = LoggerFactory.getLogger(Prefetcher.class);
  private static final int MAX_WAITING = 64;

  private final CacheRuntime cache;
  private final AtomicInteger waiting = new AtomicInteger();

  Prefetcher(CacheRuntime cache) {
    this.cache = cache;
  }

  /** Has blocks read soon, or does nothing. */
  void prefetch(Store next, BlockIds ids) {
    if (waiting.incrementAndGet() > MAX_WAITING) {
      waiting.decrementAndGet();
      return;
    }
    cache.dispatcher.submit(
        () -> {
          waiting.decrementAndGet();
          read(next, ids);
        });
  }

  private void read(Store next, BlockIds ids) {
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
      NextRead.prefetch(cache, builder, Arrays.copyOf(slots, reserved));
    }
  }
}
