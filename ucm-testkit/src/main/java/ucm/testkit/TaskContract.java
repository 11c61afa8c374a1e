package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.HashSet;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about tasks and shard listeners. */
abstract class TaskContract extends PartialBlockContract {

  /** Counts the calls for each shard and keeps the outcomes. */
  private static final class Calls implements ShardListener {
    private final AtomicIntegerArray count;
    private final AtomicReferenceArray<@Nullable ShardOutcome> outcomes;
    private final Queue<Transfer> transfers = new ConcurrentLinkedQueue<>();

    private Calls(int shards) {
      count = new AtomicIntegerArray(shards);
      outcomes = new AtomicReferenceArray<>(shards);
    }

    @Override
    public void shardEnded(Transfer transfer, int shard, ShardOutcome outcome) {
      transfers.add(transfer);
      outcomes.set(shard, outcome);
      count.incrementAndGet(shard);
    }

    private int total() {
      int total = 0;
      for (int i = 0; i < count.length(); i++) {
        total += count.get(i);
      }
      return total;
    }
  }

  @ParameterizedTest
  @EnumSource
  void tellsTheListenerOfEachShardOnceBeforeTheTaskEnds(SampleLayout sample)
      throws InterruptedException {
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(80, 8);
    TransferMemory dumped =
        TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids.slice(0, 5)).fill();
    requireCalls(dumped, listener -> store.dump(dumped.transfer(listener)));
    TransferMemory loaded = TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, ids);
    requireCalls(loaded, listener -> store.load(loaded.transfer(listener)));
  }

  private interface Start {
    Task with(ShardListener listener);
  }

  private void requireCalls(TransferMemory memory, Start start) throws InterruptedException {
    int shards = memory.shardCount();
    Calls calls = new Calls(shards);
    Task task = start.with(calls);
    AtomicIntegerArray callsAtTheEnd = new AtomicIntegerArray(1);
    CountDownLatch end = new CountDownLatch(1);
    task.whenTerminal(
        () -> {
          callsAtTheEnd.set(0, calls.total());
          end.countDown();
        });
    TransferResult result = ended(task);
    assertThat(calls.total()).as("calls when await has returned").isEqualTo(shards);
    assertThat(end.await(patience().toSeconds(), TimeUnit.SECONDS))
        .as("the store ends the task within the patience")
        .isTrue();
    assertThat(callsAtTheEnd.get(0)).as("calls when the task completed").isEqualTo(shards);
    for (int shard = 0; shard < shards; shard++) {
      assertThat(calls.count.get(shard)).as("calls for shard %d", shard).isEqualTo(1);
      assertThat(calls.outcomes.get(shard))
          .as("outcome the listener saw of shard %d", shard)
          .isEqualTo(result.outcome(shard));
    }
    assertThat(new HashSet<>(calls.transfers)).as("the transfer as it was handed in").hasSize(1);
    assertThat(calls.transfers.peek().listener()).isSameAs(calls);
  }

  @ParameterizedTest
  @EnumSource
  void leavesAShardToItsListener(SampleLayout sample) throws InterruptedException {
    needBytes();
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(81, 8);
    keep(store, sample.layout(), ids);
    TransferMemory memory = TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids);
    Queue<Throwable> faults = new ConcurrentLinkedQueue<>();
    ShardListener listener =
        (transfer, shard, outcome) -> {
          try {
            assertThat(outcome).isEqualTo(ShardOutcome.OK);
            memory.check(shard);
            memory.scribble(shard);
          } catch (AssertionError e) {
            faults.add(e);
          }
        };
    ended(store.load(memory.transfer(listener)));
    assertThat(faults).as("shards not ready when the listener was told").isEmpty();
    memory.checkScribbled();
  }

  @Test
  void letsTheSourceOfAShardGoWhenItsListenerIsTold() throws InterruptedException {
    needBytes();
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(82, 6);
    TransferMemory memory =
        TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids).fill();
    ended(store.dump(memory.transfer((transfer, shard, outcome) -> memory.scribble(shard))));
    settle(store);
    requireLoads(store, sample.layout(), ids, Placement.SCATTERED);
  }

  @Test
  void runsEachActionOnceWhenTheTaskEnds() throws InterruptedException {
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    Store store = open(sample);
    for (int round = 0; round < 20; round++) {
      BlockIds ids = BlockBytes.ids(900 + round, 2);
      TransferMemory memory =
          TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids).fill();
      Task task = round % 2 == 0 ? store.dump(memory.transfer()) : store.load(memory.transfer());
      AtomicIntegerArray runs = new AtomicIntegerArray(2);
      AtomicReference<@Nullable Boolean> completed = new AtomicReference<>();
      CountDownLatch both = new CountDownLatch(2);
      task.whenTerminal(
          () -> {
            completed.set(task.check());
            runs.incrementAndGet(0);
            both.countDown();
          });
      task.whenTerminal(
          () -> {
            runs.incrementAndGet(1);
            both.countDown();
          });
      ended(task);
      assertThat(both.await(patience().toSeconds(), TimeUnit.SECONDS)).as("both ran").isTrue();
      assertThat(completed.get()).as("completed when the action ran").isTrue();
      AtomicReference<@Nullable Thread> runner = new AtomicReference<>();
      task.whenTerminal(() -> runner.set(Thread.currentThread()));
      assertThat(runner.get()).as("runs at once").isSameAs(Thread.currentThread());
      assertThat(runs.get(0)).isEqualTo(1);
      assertThat(runs.get(1)).isEqualTo(1);
    }
  }

  @Test
  void waitsNoLongerThanItIsTold() throws InterruptedException {
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    Store store = open(sample);
    for (int round = 0; round < 20; round++) {
      BlockIds ids = BlockBytes.ids(950 + round, 2);
      TransferMemory memory =
          TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids).fill();
      Task task = store.dump(memory.transfer());
      try {
        assertThat(task.await(Duration.ZERO).ok())
            .as("the task has completed and went well")
            .isTrue();
        assertThat(task.check()).as("completed, as await returned").isTrue();
      } catch (StoreTimeoutException e) {
        assertThat(e).hasMessageContaining(Long.toString(task.id()));
      }
      TransferResult result = ended(task);
      assertThat(task.check()).as("completed").isTrue();
      assertThat(task.await(Duration.ZERO).okCount()).isEqualTo(result.okCount());
      assertThat(task.result().okCount()).as("ended so for good").isEqualTo(result.okCount());
    }
  }

  @Test
  void givesEachTaskANumberOfItsOwn() throws InterruptedException {
    SampleLayout sample = SampleLayout.ONE_TENSOR;
    Store store = open(sample);
    Set<Long> numbers = new HashSet<>();
    for (int i = 0; i < 20; i++) {
      TransferMemory memory =
          TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, BlockBytes.ids(i, 1)).fill();
      Task dump = store.dump(memory.transfer());
      Task load =
          store.load(
              TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, BlockBytes.ids(100 + i, 1))
                  .transfer());
      ended(dump);
      ended(load);
      assertThat(numbers.add(dump.id())).as("number of a dump is new").isTrue();
      assertThat(numbers.add(load.id())).as("number of a load is new").isTrue();
    }
  }
}
