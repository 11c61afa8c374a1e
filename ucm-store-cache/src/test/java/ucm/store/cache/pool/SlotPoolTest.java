package ucm.store.cache.pool;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.pool.SlotPool.Reservation;

@Timeout(180)
final class SlotPoolTest {

  private static final int SHARDS = 2;

  private final AtomicInteger roomCalls = new AtomicInteger();
  private final SlotPool pool = new SlotPool(4, SHARDS, CachePolicy.LRU, _ -> {});

  @Test
  void evictsWholeBlocksAndNeverAReferencedSlot() {
    fill(1);
    fill(2);
    long held = load(1, 0);
    assertThat(Reservation.kind(held)).isEqualTo(Reservation.HIT);
    // Block 1 is older and in use: block 2 goes.
    int first = reserve(3, 0);
    int second = reserve(3, 1);
    assertThat(isComplete(2)).isFalse();
    assertThat(isComplete(1)).isTrue();
    // Now only the idle shard of block 1 can be taken, and then nothing.
    int third = reserve(4, 0);
    assertThat(isComplete(1)).isFalse();
    assertThat(Reservation.kind(load(4, 1))).isEqualTo(Reservation.NO_ROOM);
    assertThat(Set.of(first, second, third, Reservation.number(held))).hasSize(4);
    pool.setWanting(roomCalls::incrementAndGet, true);
    pool.release(Reservation.number(held));
    assertThat(roomCalls).hasValue(1);
    assertThat(reserve(4, 1)).isEqualTo(Reservation.number(held));
  }

  @Test
  void whatIsLeftOfABlockThatLostASingleShardDoesNotSayThatItWasDumped() {
    int first = Reservation.number(pool.reserveForDump(1, 1, 0, true));
    int second = Reservation.number(pool.reserveForDump(1, 1, 1, true));
    pool.filled(first, true);
    pool.filled(second, false);
    assertThat(pool.wasDumped(1, 1)).isTrue();
    int third = reserve(2, 0);
    int fourth = reserve(2, 1);
    assertThat(pool.wasDumped(1, 1)).isTrue();
    assertThat(reserve(3, 0)).as("evicted alone").isEqualTo(first);
    assertThat(pool.wasDumped(1, 1)).isFalse();
    assertThat(Set.of(first, second, third, fourth)).hasSize(4);
  }

  @Test
  void droppedBlockLivesOnForThoseWhoHoldIt() {
    fill(1);
    long held = load(1, 0);
    pool.drop(1, 1);
    assertThat(isComplete(1)).isFalse();
    assertThat(pool.inUse()).isEqualTo(1);
    int again = reserve(1, 0);
    assertThat(again).isNotEqualTo(Reservation.number(held));
    pool.release(Reservation.number(held));
    pool.notFilled(again, ShardOutcome.FAILED, null);
    pool.release(again);
    assertThat(pool.inUse()).isZero();
  }

  @Test
  void slotDroppedWhileItIsFilledIsNeverAHit() {
    int slot = reserve(1, 0);
    pool.drop(1, 1);
    pool.filled(slot, false);
    pool.release(slot);
    assertThat(Reservation.kind(load(1, 0))).isEqualTo(Reservation.RESERVED);
    assertThat(pool.inUse()).isEqualTo(1);
  }

  @Test
  void givesEverySlotOnce() {
    int slots = 4099;
    SlotPool large = new SlotPool(slots, 1, CachePolicy.LRU, _ -> {});
    Set<Integer> given = new HashSet<>();
    for (long id = 0; given.size() < slots; id++) {
      assertThat(id).isLessThan(100L * slots);
      long reservation = large.reserveForDump(id, id, 0, true);
      if (Reservation.kind(reservation) == Reservation.RESERVED) {
        assertThat(given.add(Reservation.number(reservation))).isTrue();
        assertThat(Reservation.number(reservation)).isBetween(0, slots - 1);
      }
    }
    assertThat(large.inUse()).isEqualTo(slots);
    given.forEach(slot -> large.filled(slot, false));
    given.forEach(slot -> large.release(slot));
    assertThat(large.referenced()).isZero();
  }

  @Test
  void readersAlwaysFindTheShardTheyAskedFor() throws Exception {
    int slots = 64;
    int blocks = 100;
    SlotPool shared = new SlotPool(slots, SHARDS, CachePolicy.S3FIFO, _ -> {});
    // What lies in each slot: the name of a shard, or 0 while it is being filled.
    AtomicLongArray bytes = new AtomicLongArray(slots);
    List<Future<Integer>> results = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      for (int thread = 0; thread < 4; thread++) {
        Random random = new Random(thread);
        results.add(threads.submit(() -> hammer(shared, bytes, blocks, random)));
      }
      for (Future<Integer> hits : results) {
        assertThat(hits.get()).isPositive();
      }
    }
    assertThat(shared.referenced()).isZero();
    for (long id = 0; id < blocks; id++) {
      shared.drop(id, id);
    }
    assertThat(shared.inUse()).isZero();
  }

  private static int hammer(SlotPool pool, AtomicLongArray bytes, int blocks, Random random) {
    int hits = 0;
    Deque<Integer> held = new ArrayDeque<>();
    for (int step = 0; step < 200_000; step++) {
      long id = random.nextInt(blocks);
      int shard = random.nextInt(SHARDS);
      long name = 1 + id * SHARDS + shard;
      boolean load = random.nextBoolean();
      long reservation =
          load
              ? pool.reserveForLoad(id, id, shard, null, 0, true)
              : pool.reserveForDump(id, id, shard, true);
      int slot = Reservation.number(reservation);
      if (Reservation.kind(reservation) == Reservation.RESERVED) {
        bytes.set(slot, name);
        if (random.nextInt(10) == 0) {
          bytes.set(slot, 0);
          pool.notFilled(slot, ShardOutcome.FAILED, null);
        } else {
          pool.filled(slot, false);
        }
        held.add(slot);
      } else if (load && Reservation.kind(reservation) == Reservation.HIT) {
        hits++;
        assertThat(bytes.get(slot)).isEqualTo(name);
        held.add(slot);
      } else if (random.nextInt(50) == 0) {
        pool.drop(id, id);
      }
      while (held.size() > 8) {
        pool.release(held.remove());
      }
    }
    held.forEach(slot -> pool.release(slot));
    return hits;
  }

  private void fill(long id) {
    for (int shard = 0; shard < SHARDS; shard++) {
      int slot = reserve(id, shard);
      pool.filled(slot, false);
      pool.release(slot);
    }
    assertThat(isComplete(id)).isTrue();
  }

  private int reserve(long id, int shard) {
    long reservation = pool.reserveForDump(id, id, shard, true);
    assertThat(Reservation.kind(reservation)).isEqualTo(Reservation.RESERVED);
    return Reservation.number(reservation);
  }

  private long load(long id, int shard) {
    return pool.reserveForLoad(id, id, shard, null, 0, true);
  }

  private boolean isComplete(long id) {
    return pool.isComplete(BlockIds.of(id, id), 0);
  }
}
