package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.testkit.SampleLayout.ONE_TENSOR;
import static ucm.testkit.SampleLayout.TWENTY_FOUR_LAYERS;
import static ucm.testkit.TransferMemory.Placement.PACKED;

import java.time.Duration;
import java.util.HashSet;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;

/** The part of the suite about tasks and shard listeners. */
interface TaskContract extends ContractPart {

  @ParameterizedTest
  @EnumSource
  default void tellsTheListenerOfEachShardOnceBeforeTheTaskEnds(SampleLayout sample) {
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(80, 8);
    requireCalls(store, store.memory(ids.slice(0, 5)).fill(), store::dump);
    requireCalls(store, store.memory(ids, PACKED), store::load);
  }

  private void requireCalls(
      OpenStore store, TransferMemory memory, Function<Transfer, Task> start) {
    record Call(Transfer transfer, int shard, ShardOutcome outcome) {}
    int shards = memory.shardCount();
    Queue<Call> calls = new ConcurrentLinkedQueue<>();
    ShardListener listener =
        (transfer, shard, outcome) -> calls.add(new Call(transfer, shard, outcome));
    Task task = start.apply(memory.transfer(listener));
    CompletableFuture<Integer> callsAtTheEnd = new CompletableFuture<>();
    task.whenTerminal(() -> callsAtTheEnd.complete(calls.size()));
    TransferResult result = store.ended(task);
    assertThat(calls)
        .extracting(Call::shard)
        .as("each shard once when await has returned")
        .containsExactlyInAnyOrderElementsOf(IntStream.range(0, shards).boxed().toList());
    assertThat(callsAtTheEnd)
        .as("calls when the task completed")
        .succeedsWithin(suite().patience())
        .isEqualTo(shards);
    assertThat(calls)
        .as("outcomes the listener saw")
        .allSatisfy(call -> assertThat(call.outcome()).isEqualTo(result.outcome(call.shard())));
    assertThat(calls.stream().map(Call::transfer).distinct())
        .as("the transfer as it was handed in")
        .hasSize(1)
        .allSatisfy(transfer -> assertThat(transfer.listener()).isSameAs(listener));
  }

  @ParameterizedTest
  @EnumSource
  default void leavesAShardToItsListener(SampleLayout sample) {
    suite().needBytes();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(81, 8);
    store.keep(ids);
    TransferMemory memory = store.memory(ids);
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
    store.ended(store.load(memory.transfer(listener)));
    assertThat(faults).as("shards not ready when the listener was told").isEmpty();
    memory.checkScribbled();
  }

  @Test
  default void letsTheSourceOfAShardGoWhenItsListenerIsTold() {
    suite().needBytes();
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    BlockIds ids = BlockBytes.ids(82, 6);
    TransferMemory memory = store.memory(ids).fill();
    store.ended(store.dump(memory.transfer((transfer, shard, outcome) -> memory.scribble(shard))));
    store.settle();
    store.requireLoads(ids);
  }

  @Test
  default void runsEachActionOnceWhenTheTaskEnds() throws InterruptedException {
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    for (int round = 0; round < 20; round++) {
      Transfer transfer = store.memory(BlockBytes.ids(900 + round, 2)).fill().transfer();
      Task task = round % 2 == 0 ? store.dump(transfer) : store.load(transfer);
      Queue<String> runs = new ConcurrentLinkedQueue<>();
      CountDownLatch both = new CountDownLatch(2);
      for (String action : new String[] {"first", "second"}) {
        task.whenTerminal(
            () -> {
              runs.add(action + (task.check() ? " when completed" : " too early"));
              both.countDown();
            });
      }
      store.ended(task);
      suite().await(both, "both ran");
      AtomicReference<@Nullable Thread> runner = new AtomicReference<>();
      task.whenTerminal(() -> runner.set(Thread.currentThread()));
      assertThat(runner.get()).as("runs at once").isSameAs(Thread.currentThread());
      assertThat(runs).containsExactlyInAnyOrder("first when completed", "second when completed");
    }
  }

  @Test
  default void waitsNoLongerThanItIsTold() throws InterruptedException {
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    for (int round = 0; round < 20; round++) {
      Task task = store.dump(store.memory(BlockBytes.ids(950 + round, 2)).fill().transfer());
      try {
        assertThat(task.await(Duration.ZERO).ok())
            .as("the task has completed and went well")
            .isTrue();
        assertThat(task.check()).as("completed, as await returned").isTrue();
      } catch (StoreTimeoutException e) {
        assertThat(e).hasMessageContaining(Long.toString(task.id()));
      }
      TransferResult result = store.ended(task);
      assertThat(task.check()).as("completed").isTrue();
      assertThat(task.await(Duration.ZERO).okCount()).isEqualTo(result.okCount());
      assertThat(task.result().okCount()).as("ended so for good").isEqualTo(result.okCount());
    }
  }

  @Test
  default void givesEachTaskANumberOfItsOwn() {
    OpenStore store = suite().open(ONE_TENSOR);
    Set<Long> numbers = new HashSet<>();
    for (int i = 0; i < 20; i++) {
      Task dump = store.dump(store.memory(BlockBytes.ids(i, 1), PACKED).fill().transfer());
      Task load = store.load(store.memory(BlockBytes.ids(100 + i, 1), PACKED).transfer());
      store.ended(dump);
      store.ended(load);
      assertThat(numbers.add(dump.id())).as("number of a dump is new").isTrue();
      assertThat(numbers.add(load.id())).as("number of a load is new").isTrue();
    }
  }
}
