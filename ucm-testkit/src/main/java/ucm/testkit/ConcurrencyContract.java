package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite in which many threads use one store. */
abstract class ConcurrencyContract extends TaskContract {

  private static final SampleLayout SAMPLE = SampleLayout.TWO_TENSORS_THREE_SHARDS;
  private static final int THREADS = 6;
  private static final int STEPS = 40;
  private static final long SEED = 20_261;
  // What waits with a shorter patience is to report a wait that never ends.
  private static final Duration MARGIN = Duration.ofSeconds(60);

  private interface Job {
    void run(int thread) throws Exception;
  }

  @Test
  void servesManyThreadsAtOnce() throws Exception {
    Store store = open(SAMPLE);
    BlockLayout layout = SAMPLE.layout();
    BlockIds ids = BlockBytes.ids(SEED, 24);
    atOnce(
        thread -> {
          Random random = new Random(SEED + thread);
          for (int step = 0; step < STEPS; step++) {
            int block = random.nextInt(ids.size());
            switch (random.nextInt(4)) {
              case 0 ->
                  dump(
                      store,
                      TransferMemory.ofBlocks(
                          layout, Placement.SCATTERED, ids.slice(block, block + 1)));
              case 1 ->
                  dump(
                      store,
                      TransferMemory.ofShards(
                          layout,
                          Placement.PACKED,
                          ids,
                          block,
                          random.nextInt(layout.shardCount())));
              default -> loadSome(store, layout, ids, random);
            }
          }
        });
    if (keepsBlocks()) {
      keep(store, layout, ids);
      assertThat(store.lookupPrefix(ids)).as("seed %d", SEED).isEqualTo(ids.size() - 1);
      requireLoads(store, layout, ids, Placement.REGION_PER_TENSOR);
    }
  }

  /** Loads what a look-up found and one block that it may not have found; right bytes or none. */
  private void loadSome(Store store, BlockLayout layout, BlockIds ids, Random random)
      throws InterruptedException {
    int from = random.nextInt(ids.size() - 4);
    BlockIds some = ids.slice(from, from + 4);
    BitSet found = store.lookup(some);
    found.set(random.nextInt(4));
    TransferMemory memory =
        TransferMemory.ofBlocks(
            layout,
            random.nextBoolean() ? Placement.SCATTERED : Placement.PACKED,
            select(some, found));
    TransferResult result = ended(store.load(memory.transfer()));
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      assertThat(result.outcome(shard)).isIn(ShardOutcome.OK, ShardOutcome.MISSING);
    }
    requireRightBytes(result, memory);
  }

  private static BlockIds select(BlockIds ids, BitSet chosen) {
    long[] words = new long[2 * chosen.cardinality()];
    int n = 0;
    for (int i = chosen.nextSetBit(0); i >= 0; i = chosen.nextSetBit(i + 1)) {
      words[n++] = ids.high(i);
      words[n++] = ids.low(i);
    }
    return BlockIds.wrap(words);
  }

  @Test
  void takesOneBlockFromManyThreads() throws Exception {
    Store store = open(SampleLayout.TWENTY_FOUR_LAYERS);
    BlockLayout layout = SampleLayout.TWENTY_FOUR_LAYERS.layout();
    for (int round = 0; round < 5; round++) {
      BlockIds ids = BlockBytes.ids(SEED + 100 + round, 1);
      // Every shard comes from two threads; all but the last, which comes alone at the end.
      atOnce(
          thread -> {
            for (int shard = thread / 2; shard < layout.shardCount() - 1; shard += THREADS / 2) {
              dump(store, TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, shard));
              requireAbsent(store, ids);
            }
          });
      dump(
          store,
          TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, layout.shardCount() - 1));
      if (keepsBlocks()) {
        settle(store);
        requireLoads(store, layout, ids, Placement.SCATTERED);
      }
    }
  }

  @Test
  void keepsABlockThatManyThreadsDumpAtOnce() throws Exception {
    needBlocks();
    Store store = open(SAMPLE);
    BlockIds ids = BlockBytes.ids(SEED + 200, 10);
    atOnce(
        thread -> {
          for (int block = 0; block < ids.size(); block++) {
            dump(
                store,
                TransferMemory.ofBlocks(
                    SAMPLE.layout(), Placement.SCATTERED, ids.slice(block, block + 1)));
          }
        });
    settle(store);
    requireLoads(store, SAMPLE.layout(), ids, Placement.SCATTERED);
  }

  @Test
  void endsEveryLoadOfOneAbsentBlock() throws Exception {
    Store store = open(SAMPLE);
    BlockIds ids = BlockBytes.ids(SEED + 300, 1);
    for (int round = 0; round < 5; round++) {
      atOnce(
          thread -> {
            TransferMemory memory =
                TransferMemory.ofBlocks(SAMPLE.layout(), Placement.SCATTERED, ids);
            TransferResult result = ended(store.load(memory.transfer()));
            assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
            assertThat(result.okCount()).isZero();
            memory.checkGuards();
          });
    }
    assertThat(store.lookup(ids).stream()).as("after loads that missed").isEmpty();
    if (keepsBlocks()) {
      keep(store, SAMPLE.layout(), ids);
      requireLoads(store, SAMPLE.layout(), ids, Placement.SCATTERED);
    }
  }

  @Test
  void takesOrRefusesAtOnceWhatAShortQueueIsAsked() throws Exception {
    assumeTrue(
        newStore().configKeys().contains(CommonKeys.WAITING_QUEUE_DEPTH),
        "does not read waiting_queue_depth");
    Store store = open(SAMPLE, Map.of(CommonKeys.WAITING_QUEUE_DEPTH.name(), 1));
    BlockLayout layout = SAMPLE.layout();
    BlockIds ids = BlockBytes.ids(SEED + 400, THREADS);
    AtomicInteger taken = new AtomicInteger();
    atOnce(
        thread -> {
          BlockIds one = ids.slice(thread, thread + 1);
          Map<Task, TransferMemory> tasks = new LinkedHashMap<>();
          for (int i = 0; i < 50; i++) {
            TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, one);
            try {
              Task task =
                  i % 2 == 0 ? store.dump(memory.fill().transfer()) : store.load(memory.transfer());
              tasks.put(task, memory);
              taken.incrementAndGet();
            } catch (QueueFullException e) {
              assertThat(e).hasMessageContaining(CommonKeys.WAITING_QUEUE_DEPTH.name());
            }
          }
          for (Map.Entry<Task, TransferMemory> task : tasks.entrySet()) {
            requireRightBytes(ended(task.getKey()), task.getValue());
          }
        });
    assertThat(taken).as("transfers taken").hasPositiveValue();
  }

  /** Any outcome may be, but bytes of a shard that ended well are right. */
  private void requireRightBytes(TransferResult result, TransferMemory memory) {
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (result.outcome(shard) == ShardOutcome.OK && keepsBytes()) {
        memory.check(shard);
      }
    }
    memory.checkGuards();
  }

  @Test
  void endsWhatIsUnderWayWhenItIsClosed() throws Exception {
    Store store = open(SampleLayout.TWENTY_FOUR_LAYERS);
    BlockLayout layout = SampleLayout.TWENTY_FOUR_LAYERS.layout();
    BlockIds ids = BlockBytes.ids(SEED + 600, 24);
    Queue<Task> tasks = new ConcurrentLinkedQueue<>();
    CountDownLatch busy = new CountDownLatch(THREADS);
    atOnce(
        thread -> {
          if (thread == 0) {
            busy.countDown();
            assertThat(busy.await(patience().toSeconds(), TimeUnit.SECONDS))
                .as("the store has taken up work on another thread within the patience")
                .isTrue();
            store.close();
            return;
          }
          try {
            for (int block = 0; block < ids.size(); block++) {
              TransferMemory memory =
                  TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids.slice(block, block + 1))
                      .fill();
              tasks.add(
                  thread % 2 == 0 ? store.dump(memory.transfer()) : store.load(memory.transfer()));
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

  /** Runs a job on all threads at once and fails with the first failure of any. */
  private void atOnce(Job job) throws Exception {
    CountDownLatch start = new CountDownLatch(1);
    try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
      List<Future<?>> jobs = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        int thread = i;
        jobs.add(
            threads.submit(
                () -> {
                  start.await();
                  job.run(thread);
                  return null;
                }));
      }
      start.countDown();
      for (Future<?> one : jobs) {
        one.get(patience().plus(MARGIN).toMillis(), TimeUnit.MILLISECONDS);
      }
    } catch (ExecutionException e) {
      if (e.getCause() instanceof AssertionError failure) {
        throw failure;
      }
      throw e;
    }
  }
}
