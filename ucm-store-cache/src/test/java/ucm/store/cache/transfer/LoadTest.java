package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

final class LoadTest extends OverHeldNext {
  // So often a store looks at the clock of the test, by which its tasks are due.
  private static final Duration SHORT = Duration.ofMillis(50);

  private final ManualClock clock = new ManualClock();

  @Test
  void copiesEachShardOnAsItArrivesInAnyOrder() throws InterruptedException {
    TestCache cache = cache(8);
    TransferMemory memory = memory(BlockBytes.ids(1, 2));
    List<Integer> ended = new ArrayList<>();
    Task task = cache.store.load(memory.transfer((_, shard, _) -> ended.add(shard)));
    HeldNext.Held read = next.nextLoad();
    for (int shard : new int[] {2, 0, 3, 1}) {
      assertThat(task.check()).isFalse();
      read.serve(shard);
      memory.check(shard);
    }
    assertThat(ended).containsExactly(2, 0, 3, 1);
    assertThat(task.result().ok()).isTrue();
    memory.check();
    requireIdle(cache, 4);
  }

  @Test
  void servesASecondLoadFromThePool() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 2);
    bring(cache, ids);
    TransferMemory again = memory(ids);
    assertThat(cache.store.load(again.transfer()).await(PATIENCE).ok()).isTrue();
    again.check();
    assertThat(next.loads).isEmpty();
    assertThat(cache.metrics.count("cache_hit_shards")).isEqualTo(4);
    assertThat(cache.metrics.count("cache_miss_shards")).isEqualTo(4);
    assertThat(cache.metrics.count("cache_load_bytes")).isEqualTo(8 * 4096);
  }

  @Test
  void failedLoadFreesTheSlotAndIsNoHit() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 2);
    for (ShardOutcome outcome :
        new ShardOutcome[] {
          ShardOutcome.MISSING,
          ShardOutcome.CORRUPT,
          ShardOutcome.REFUSED,
          ShardOutcome.EXPIRED,
          ShardOutcome.FAILED
        }) {
      Task task = cache.store.load(memory(ids).transfer());
      HeldNext.Held read = next.nextLoad();
      StoreException cause =
          outcome == ShardOutcome.MISSING ? null : new StoreException("disk on fire");
      read.serve(0);
      read.end(1, outcome, cause);
      read.end(2, outcome, cause);
      read.end(3, outcome, cause);
      TransferResult result = task.await(PATIENCE);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.OK);
      assertThat(result.failedShards().cardinality()).isEqualTo(3);
      assertThat(result.outcome(3)).isEqualTo(outcome);
      assertThat(result.cause()).isSameAs(cause);
      assertThat(cache.store.lookup(ids).isEmpty()).isTrue();
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(-1);
      requireIdle(cache, 1);
      cache.pool().drop(ids.high(0), ids.low(0));
    }
    assertThat(cache.metrics.count("cache_backend_failures")).isEqualTo(4 * 3);
    bring(cache, ids);
  }

  @Test
  void blockOfWhichOnlyTheFirstShardIsThereIsNoHit() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds id = BlockBytes.ids(1, 1);
    TransferMemory first = TransferMemory.ofShards(LAYOUT, Placement.SCATTERED, id, 0, 0);
    Task task = cache.store.load(first.transfer());
    next.nextLoad().serveAll();
    assertThat(task.await(PATIENCE).ok()).isTrue();
    assertThat(cache.store.lookup(id).isEmpty()).isTrue();
  }

  @Test
  void loadsOfOneShardShareOneRead() throws InterruptedException {
    TestCache cache = cache(8);
    List<TransferMemory> memories = new ArrayList<>();
    List<Task> tasks = loadThrice(cache, memories);
    HeldNext.Held read = next.nextLoad();
    assertThat(next.loads).isEmpty();
    read.serveAll();
    for (int i = 0; i < 3; i++) {
      assertThat(tasks.get(i).await(PATIENCE).ok()).isTrue();
      memories.get(i).check();
    }
    assertThat(cache.metrics.count("cache_joined_shards")).isEqualTo(4);
    requireIdle(cache, 2);
  }

  @Test
  void loadsOfOneMissingBlockAllEndWhenItsReadFails() throws InterruptedException {
    TestCache cache = cache(8);
    List<Task> tasks = loadThrice(cache, new ArrayList<>());
    StoreException cause = new StoreException("disk on fire");
    HeldNext.Held read = next.nextLoad();
    read.end(0, ShardOutcome.MISSING, null);
    read.end(1, ShardOutcome.FAILED, cause);
    for (Task task : tasks) {
      TransferResult result = task.await(PATIENCE);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
      assertThat(result.outcome(1)).isEqualTo(ShardOutcome.FAILED);
      assertThat(result.cause()).isSameAs(cause);
    }
    requireIdle(cache, 0);
  }

  @Test
  void readThatComesAfterTheDeadlineLandsNowhereButInItsSlot() throws InterruptedException {
    TestCache cache = hasty(4);
    BlockIds late = BlockBytes.ids(1, 1);
    TransferMemory memory = memory(late).scribble();
    Task task = cache.store.load(memory.transfer());
    HeldNext.Held read = next.nextLoad();
    clock.advance(SHORT);
    TransferResult result = task.await(PATIENCE);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(result.cause()).hasMessageContaining("timeout_ms 50");

    // Its slots are still taken: two other blocks have two slots to share.
    BlockIds others = BlockBytes.ids(2, 2);
    TransferMemory dumped = memory(others).fill();
    Task dump = cache.store.dump(dumped.transfer());
    HeldNext.Held write = next.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(2);
    read.serveAll();
    write.takeAll();
    // The late read is over, so the rest of the dump has room.
    takeDumpsUntil(dump);
    memory.checkScribbled();
    for (int i = 0; i < 2; i++) {
      TransferMemory loaded = memory(others.slice(i, i + 1));
      if (cache.store.lookup(others.slice(i, i + 1)).get(0)) {
        assertThat(cache.store.load(loaded.transfer()).await(PATIENCE).ok()).isTrue();
        loaded.check();
      }
    }
  }

  @Test
  void shardThatFailedKeepsItsSlotUntilTheNextStageIsDoneWithIt() throws InterruptedException {
    TestCache cache = hasty(2);
    Task task = cache.store.load(memory(BlockBytes.ids(1, 1)).transfer());
    HeldNext.Held read = next.nextLoad();
    read.end(0, ShardOutcome.MISSING, null);
    assertThat(cache.pool().referenced()).isEqualTo(2);
    clock.advance(SHORT);
    task.await(PATIENCE);
    assertThat(cache.pool().referenced()).isEqualTo(2);
    read.serve(1);
    requireIdle(cache, 1);
  }

  @Test
  void taskOfMoreShardsThanThePoolHasSlotsEnds() throws InterruptedException {
    TestCache cache = cache(3);
    TransferMemory memory = memory(BlockBytes.ids(1, 20));
    Task task = cache.store.load(memory.transfer());
    int served = 0;
    while (served < memory.shardCount()) {
      HeldNext.Held read = next.nextLoad();
      assertThat(read.transfer.shardCount()).isBetween(1, 3);
      served += read.transfer.shardCount();
      read.serveAll();
    }
    assertThat(task.await(PATIENCE).ok()).isTrue();
    memory.check();
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void poolFullOfReferencedSlotsEndsTheTaskAtItsDeadline() throws InterruptedException {
    TestCache cache = hasty(2);
    cache.store.load(memory(BlockBytes.ids(1, 1)).transfer());
    HeldNext.Held hanging = next.nextLoad();
    Task waiting = cache.store.load(memory(BlockBytes.ids(2, 1)).transfer());
    cache.awaitWanting();
    clock.advance(SHORT);
    TransferResult result = waiting.await(PATIENCE);
    assertThat(result.outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(result.cause())
        .hasMessageContaining("cache_buffer_capacity_gb")
        .hasMessageContaining("2 slots");
    assertThat(next.loads).isEmpty();
    hanging.serveAll();
    bring(cache, BlockBytes.ids(2, 1));
  }

  @Test
  void refusalOfTheNextStageReachesTheEngine() throws InterruptedException {
    TestCache cache = cache(4);
    next.refuse(new QueueFullException("Held tasks", 1, "waiting_queue_depth"));
    TransferResult full = cache.store.load(memory(BlockBytes.ids(1, 1)).transfer()).await(PATIENCE);
    assertThat(full.outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    assertThat(full.cause()).isInstanceOf(QueueFullException.class);
    next.refuse(new StoreException("gone"));
    TransferResult gone = cache.store.load(memory(BlockBytes.ids(1, 1)).transfer()).await(PATIENCE);
    assertThat(gone.outcome(0)).isEqualTo(ShardOutcome.FAILED);
    assertThat(gone.cause()).hasMessage("gone");
    requireIdle(cache, 0);
  }

  @Test
  void asksTheNextStageForEverythingWhenToldTo() throws InterruptedException {
    TestCache cache = cache(4, Map.of("cache_load_backend_only", true));
    BlockIds ids = BlockBytes.ids(1, 1);
    for (int round = 0; round < 2; round++) {
      bring(cache, ids);
      requireIdle(cache, 0);
    }
    assertThat(cache.store.lookup(ids).isEmpty()).isTrue();
  }

  private List<Task> loadThrice(TestCache cache, List<TransferMemory> memories) {
    List<Task> tasks = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      TransferMemory memory = memory(BlockBytes.ids(1, 1));
      memories.add(memory);
      tasks.add(cache.store.load(memory.transfer()));
    }
    return tasks;
  }

  private void takeDumpsUntil(Task dump) throws InterruptedException {
    while (!dump.check()) {
      HeldNext.Held write = next.dumps.poll(10, TimeUnit.MILLISECONDS);
      if (write != null) {
        write.takeAll();
      }
    }
    for (HeldNext.Held write = next.dumps.poll(); write != null; write = next.dumps.poll()) {
      write.takeAll();
    }
  }

  private TestCache hasty(int slots) {
    return cache(slots, Map.of("timeout_ms", (int) SHORT.toMillis()), clock);
  }

  private static void requireIdle(TestCache cache, int slotsInUse) {
    assertThat(cache.pool().referenced()).as("referenced slots").isZero();
    assertThat(cache.pool().inUse()).as("slots in use").isEqualTo(slotsInUse);
  }
}
