package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static ucm.testkit.SampleLayout.TWENTY_FOUR_LAYERS;
import static ucm.testkit.SampleLayout.TWO_TENSORS_THREE_SHARDS;
import static ucm.testkit.TransferMemory.Placement.PACKED;
import static ucm.testkit.TransferMemory.Placement.REGION_PER_TENSOR;
import static ucm.testkit.TransferMemory.Placement.SCATTERED;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;

/** The part of the suite in which many threads use one store. */
interface ConcurrencyContract extends ContractPart {

  @Test
  default void servesManyThreadsAtOnce() throws Exception {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(20_261, 24);
    suite()
        .atOnce(
            thread -> {
              Random random = new Random(20_261 + thread);
              for (int step = 0; step < 40; step++) {
                int block = random.nextInt(ids.size());
                BlockIds one = ids.slice(block, block + 1);
                int shard = random.nextInt(store.layout.shardCount());
                switch (random.nextInt(4)) {
                  case 0 -> store.requireDumps(store.memory(one));
                  case 1 -> store.requireDumps(store.shards(one, PACKED, shard));
                  default -> loadSome(store, ids, random);
                }
              }
            });
    if (suite().keepsBlocks()) {
      store.keep(ids);
      assertThat(store.lookupPrefix(ids)).isEqualTo(ids.size() - 1);
      store.requireLoads(ids, REGION_PER_TENSOR);
    }
  }

  /** Loads what a look-up found and one block that it may not have found; right bytes or none. */
  private static void loadSome(OpenStore store, BlockIds ids, Random random) {
    int from = random.nextInt(ids.size() - 4);
    BlockIds some = ids.slice(from, from + 4);
    BitSet found = store.lookup(some);
    found.set(random.nextInt(4));
    BlockIds chosen = BlockIds.ofHex(found.stream().mapToObj(some::hex).toList());
    TransferMemory memory = store.memory(chosen, random.nextBoolean() ? SCATTERED : PACKED);
    TransferResult result = store.loaded(memory);
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      assertThat(result.outcome(shard)).isIn(ShardOutcome.OK, ShardOutcome.MISSING);
    }
    store.requireRightBytes(result, memory);
  }

  @Test
  default void takesOneBlockFromManyThreads() throws Exception {
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    int last = store.layout.shardCount() - 1;
    for (int round = 0; round < 5; round++) {
      BlockIds ids = BlockBytes.ids(20_361 + round, 1);
      // Every shard comes from two threads; all but the last, which comes alone at the end.
      suite()
          .atOnce(
              thread -> {
                for (int shard = thread / 2; shard < last; shard += StoreContract.THREADS / 2) {
                  store.requireDumps(store.shards(ids, SCATTERED, shard));
                  store.requireAbsent(ids);
                }
              });
      store.requireDumps(store.shards(ids, SCATTERED, last));
      if (suite().keepsBlocks()) {
        store.settle();
        store.requireLoads(ids);
      }
    }
  }

  @Test
  default void keepsABlockThatManyThreadsDumpAtOnce() throws Exception {
    suite().needBlocks();
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(20_461, 10);
    suite()
        .atOnce(
            thread -> {
              for (int block = 0; block < ids.size(); block++) {
                store.requireDumps(store.memory(ids.slice(block, block + 1)));
              }
            });
    store.settle();
    store.requireLoads(ids);
  }

  @Test
  default void endsEveryLoadOfOneAbsentBlock() throws Exception {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(20_561, 1);
    for (int round = 0; round < 5; round++) {
      suite()
          .atOnce(
              thread -> {
                TransferMemory memory = store.memory(ids);
                TransferResult result = store.loaded(memory);
                assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
                assertThat(result.okCount()).isZero();
                memory.checkGuards();
              });
    }
    assertThat(store.lookup(ids).stream()).as("after loads that missed").isEmpty();
    if (suite().keepsBlocks()) {
      store.keep(ids);
      store.requireLoads(ids);
    }
  }

  @Test
  default void takesOrRefusesAtOnceWhatAShortQueueIsAsked() throws Exception {
    String key = CommonKeys.WAITING_QUEUE_DEPTH.name();
    assumeTrue(
        suite().newStore().configKeys().contains(CommonKeys.WAITING_QUEUE_DEPTH),
        "does not read " + key);
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS, Map.of(key, 1));
    BlockIds ids = BlockBytes.ids(20_661, StoreContract.THREADS);
    AtomicInteger taken = new AtomicInteger();
    suite()
        .atOnce(
            thread -> {
              BlockIds one = ids.slice(thread, thread + 1);
              Map<Task, TransferMemory> tasks = new LinkedHashMap<>();
              for (int i = 0; i < 50; i++) {
                TransferMemory memory = store.memory(one);
                try {
                  Task task =
                      i % 2 == 0
                          ? store.dump(memory.fill().transfer())
                          : store.load(memory.transfer());
                  tasks.put(task, memory);
                  taken.incrementAndGet();
                } catch (QueueFullException e) {
                  assertThat(e).hasMessageContaining(key);
                }
              }
              tasks.forEach((task, memory) -> store.requireRightBytes(store.ended(task), memory));
            });
    assertThat(taken).as("transfers taken").hasPositiveValue();
  }

  @Test
  default void endsWhatIsUnderWayWhenItIsClosed() throws Exception {
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    BlockIds ids = BlockBytes.ids(20_861, 24);
    Queue<Task> tasks = new ConcurrentLinkedQueue<>();
    CountDownLatch busy = new CountDownLatch(StoreContract.THREADS);
    suite()
        .atOnce(
            thread -> {
              if (thread == 0) {
                busy.countDown();
                suite().await(busy, "the store has taken up work on the other threads");
                store.close();
                return;
              }
              try {
                for (int block = 0; block < ids.size(); block++) {
                  Transfer one = store.memory(ids.slice(block, block + 1)).fill().transfer();
                  tasks.add(thread % 2 == 0 ? store.dump(one) : store.load(one));
                  if (block == 3) {
                    busy.countDown();
                  }
                }
              } catch (StoreClosedException expected) {
                assertThat(expected).hasMessageContaining(store.name());
              } finally {
                busy.countDown();
              }
            });
    store.close();
    assertThat(tasks).isNotEmpty();
    assertThat(tasks)
        .allSatisfy(task -> assertThat(task.check()).as("%s when closed", task).isTrue());
  }
}
