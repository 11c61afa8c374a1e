package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.SharedVictim;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TestProcess;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What workers that share a buffer owe one another, and what becomes of it when one dies. */
@Timeout(120)
public final class SharedPeerTest {

  public static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 2 * 4096);

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String NAME = "peer";

  private final List<TestCache> open = new ArrayList<>();
  private final List<TestProcess> processes = new ArrayList<>();
  private final List<HeldNext> nextStages = new ArrayList<>();

  public static Map<String, Object> settings(String uniqueId, int slabs, int timeoutMs) {
    return new TreeMap<>(
        Map.of(
            "share_buffer_enable",
            true,
            "unique_id",
            uniqueId,
            "timeout_ms",
            timeoutMs,
            "cache_buffer_capacity_gb",
            TestCache.gib(LAYOUT, (long) slabs * LAYOUT.shardCount())));
  }

  @AfterEach
  void closesAllAndLeavesNoSegment() {
    processes.forEach(TestProcess::close);
    nextStages.forEach(HeldNext::letGo);
    open.forEach(TestCache::close);
    Segments.requireNone();
  }

  @Test
  void oneReadOfTheNextStageServesTheLoadsOfAllWorkers() throws Exception {
    TestCache first = worker(4);
    TestCache second = worker(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    TransferMemory one = memory(ids);
    TransferMemory two = memory(ids);
    Task reading = first.store.load(one.transfer());
    HeldNext.Held read = nextStages.get(0).nextLoad();
    Task waiting = second.store.load(two.transfer());
    assertThat(second.metrics.count("cache_joined_shards")).isEqualTo(4);
    read.serveAll();
    reading.await(PATIENCE).requireOk();
    waiting.await(PATIENCE).requireOk();
    one.check();
    two.check();
    assertThat(nextStages.get(1).loads).isEmpty();
    // And once it is there, it is a hit for all.
    TransferMemory again = memory(ids);
    second.store.load(again.transfer()).await(PATIENCE).requireOk();
    again.check();
    assertThat(second.metrics.count("cache_hit_shards")).isEqualTo(4);
    requireIdle(first);
  }

  @Test
  void whoWaitsForAReadThatFailsReadsForItself() throws Exception {
    TestCache first = worker(4);
    TestCache second = worker(4);
    BlockIds ids = BlockBytes.ids(1, 1);
    Task failing = first.store.load(memory(ids).transfer());
    HeldNext.Held read = nextStages.get(0).nextLoad();
    TransferMemory two = memory(ids);
    Task waiting = second.store.load(two.transfer());
    read.endAll(ShardOutcome.FAILED, new StoreException("broken"));
    assertThat(failing.await(PATIENCE).outcome(0)).isEqualTo(ShardOutcome.FAILED);
    serveUntilDone(waiting, nextStages.get(1));
    two.check();
    requireIdle(first);
  }

  @Test
  void whoWaitsForAWorkerThatDiesReadsForItself() throws Exception {
    TestProcess victim = victim("load", 4);
    TestCache survivor = worker(4);
    TransferMemory memory = memory(BlockBytes.ids(1, 1));
    Task waiting = survivor.store.load(memory.transfer());
    assertThat(survivor.metrics.count("cache_joined_shards")).isEqualTo(2);
    assertThat(survivor.store.lookup(BlockBytes.ids(1, 1)).isEmpty()).isTrue();
    victim.kill();
    serveUntilDone(waiting, nextStages.get(0));
    memory.check();
  }

  @Test
  void blockDumpedByAWorkerThatDiesIsServedWhileItLivesAndAMissAfterwards() throws Exception {
    TestProcess victim = victim("dump", 4);
    TestCache survivor = worker(4);
    BlockIds ids = BlockBytes.ids(1, 4);
    TransferMemory memory = memory(ids);
    survivor.store.load(memory.transfer()).await(PATIENCE).requireOk();
    memory.check();
    assertThat(survivor.store.lookup(ids).cardinality()).isEqualTo(4);
    assertThat(survivor.store.durable(ids).isEmpty()).isTrue();
    victim.kill();
    await("misses", () -> survivor.store.lookup(ids).isEmpty());
    // So it is not taken for stored: it is dumped again, and goes to the next stage.
    survivor.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    assertThat(survivor.store.lookup(ids).cardinality()).isEqualTo(4);
    nextStages.get(0).nextDump().takeAll();
    requireIdle(survivor);
  }

  @Test
  void roomComesFreeWhenAWorkerDiesThatHeldAllOfIt() throws Exception {
    TestProcess victim = victim("dump", 2);
    TestCache survivor = worker(2);
    BlockIds ids = BlockBytes.ids(2, 2);
    TransferMemory memory = memory(ids);
    Task waiting = survivor.store.load(memory.transfer());
    await("wanting", () -> survivor.pool().wanting() > 0);
    assertThat(waiting.check()).isFalse();
    assertThat(nextStages.get(0).loads).isEmpty();
    victim.kill();
    serveUntilDone(waiting, nextStages.get(0));
    memory.check();
  }

  @Test
  void roomThatOneWorkerGivesUpGoesToAnotherThatWants() throws Exception {
    TestCache holder = worker(2);
    TestCache wanting = worker(2);
    holder.store.dump(memory(BlockBytes.ids(1, 2)).fill().transfer()).await(PATIENCE).requireOk();
    BlockIds ids = BlockBytes.ids(2, 1);
    TransferMemory memory = memory(ids);
    Task waiting = wanting.store.load(memory.transfer());
    await("wanting", () -> wanting.pool().wanting() > 0);
    nextStages.get(0).nextDump().takeAll();
    nextStages.get(1).nextLoad().serveAll();
    waiting.await(PATIENCE).requireOk();
    memory.check();
    requireIdle(holder);
  }

  @Test
  void lockOfAWorkerThatDiesIsTakenOver() throws Exception {
    TestProcess victim = victim("lock", 4);
    TestCache survivor = worker(4);
    TransferMemory memory = memory(BlockBytes.ids(1, 1));
    Task waiting = survivor.store.load(memory.transfer());
    // It lives, so it keeps the lock, and no process waits for it for ever.
    assertThat(waiting.check()).isFalse();
    assertThat(nextStages.get(0).loads).isEmpty();
    victim.kill();
    serveUntilDone(waiting, nextStages.get(0));
    memory.check();
    // The process that clears up after the victim takes the lock for a moment as well.
    await("free again", () -> ((SharedPool) survivor.pool()).locked() == 0);
  }

  @Test
  void dumpOfABlockThatAnotherWorkerHasThereMovesNothing() throws Exception {
    TestCache first = worker(4);
    TestCache second = worker(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    first.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    second.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    assertThat(second.metrics.count("cache_dump_bytes")).isZero();
    nextStages.get(0).nextDump().takeAll();
    assertThat(nextStages.get(1).dumps).isEmpty();
  }

  @Test
  void flushWaitsForABlockThatAnotherWorkerBrings() throws Exception {
    TestCache first = worker(4);
    TestCache second = worker(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    first.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    second.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    assertThat(second.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(2);
    nextStages.get(0).nextDump().takeAll();
    nextStages.get(1).has(ids.slice(0, 1));
    assertThat(second.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(1);
    nextStages.get(1).has(ids);
    assertThat(second.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void flushNamesTheBlocksThatAWorkerWasToBringAndDied() throws Exception {
    TestProcess victim = victim("dump", 4);
    TestCache survivor = worker(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    survivor.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    assertThat(survivor.metrics.count("cache_dump_bytes")).isZero();
    victim.kill();
    FlushResult flushed = survivor.store.flush(PATIENCE);
    assertThat(flushed.failedBlocks()).isEqualTo(ids);
    assertThat(flushed.cause()).hasMessageContaining("another worker");
    assertThat(survivor.store.flush(Duration.ZERO).ok()).isTrue();
  }

  @Test
  void whatALeavingWorkerDumpedStaysOnlyIfItIsDurable() throws Exception {
    TestCache first = worker(4);
    TestCache second = worker(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    first.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    nextStages.get(0).nextDump().takeAll();
    nextStages.get(0).has(ids.slice(0, 1));
    first.close();
    assertThat(second.store.lookup(ids).stream()).containsExactly(0);
    TransferMemory memory = memory(ids.slice(0, 1));
    second.store.load(memory.transfer()).await(PATIENCE).requireOk();
    memory.check();
    assertThat(second.metrics.count("cache_hit_shards")).isEqualTo(2);
  }

  private static void serveUntilDone(Task waiting, HeldNext next) throws InterruptedException {
    while (!waiting.check()) {
      HeldNext.Held read = next.loads.poll(10, TimeUnit.MILLISECONDS);
      if (read != null) {
        read.serveAll();
      }
    }
    waiting.result().requireOk();
  }

  private void requireIdle(TestCache cache) {
    SharedPool pool = (SharedPool) cache.pool();
    await("idle", () -> pool.referencedAnywhere() == 0 && pool.locked() == 0);
  }

  private TestCache worker(int slabs) {
    HeldNext next = new HeldNext();
    nextStages.add(next);
    TestCache cache = new TestCache(LAYOUT, next, 0, settings(Segments.id(NAME), slabs, 60_000));
    open.add(cache);
    return cache;
  }

  private TestProcess victim(String what, int slabs) throws Exception {
    TestProcess victim =
        new TestProcess(SharedVictim.class, what, Segments.id(NAME), Integer.toString(slabs));
    processes.add(victim);
    String line = victim.line();
    while (line != null && !line.equals("done")) {
      line = victim.line();
    }
    assertThat(line).as("the victim has done its part").isEqualTo("done");
    return victim;
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }

  private static void await(String what, BooleanSupplier reached) {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (!reached.getAsBoolean()) {
      assertThat(System.nanoTime()).as(what).isLessThan(deadline);
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }
}
