package ucm.testkit.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.PromptStore;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault.Call;

final class FaultyStoreTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  private static final BlockIds IDS = BlockBytes.ids(1, 8);
  private static final long SEED = 42;

  private final MemoryStore inner = new MemoryStore(new MemoryStore.Volume());
  private final FaultyStore store = new FaultyStore(inner, SEED);

  @AfterEach
  void closes() {
    store.close();
  }

  @Test
  void handsEverythingOnWhenNothingIsPlanned() {
    open();
    dump(IDS).requireOk();
    TransferMemory memory = memory(IDS);
    store.load(memory.transfer()).result().requireOk();
    memory.check();
    assertThat(store.lookupPrefix(IDS)).isEqualTo(7);
    assertThat(store.calls(Call.LOAD)).isEqualTo(1);
  }

  @Test
  void failsTheNamedCallOnlyAndSaysWhichOne() {
    store.at(2, Call.LOAD, Fault.THROW).at(3, Call.LOAD, Fault.QUEUE_FULL);
    open();
    dump(IDS);
    load(IDS).requireOk();
    assertThatThrownBy(() -> load(IDS))
        .isInstanceOf(StoreException.class)
        .hasMessage("injected fault at LOAD 2 of FaultyStore[Memory, seed 42]");
    assertThatThrownBy(() -> load(IDS))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("LOAD 3 of FaultyStore[Memory, seed 42]");
    load(IDS).requireOk();
    assertThat(store.struck(Call.LOAD, Fault.THROW)).isEqualTo(1);
  }

  @Test
  void isClosedWhenItFailedToOpen() {
    store.at(1, Call.OPEN, Fault.THROW);
    assertThatThrownBy(this::open)
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("OPEN 1");
    assertThatThrownBy(() -> store.lookup(IDS)).isInstanceOf(StoreClosedException.class);
    assertThatThrownBy(() -> inner.lookup(IDS)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void isClosedThoughCloseFailed() {
    store.at(1, Call.CLOSE, Fault.THROW);
    open();
    assertThatThrownBy(store::close).hasMessageContaining("injected fault at CLOSE 1");
    assertThatThrownBy(() -> inner.lookup(IDS)).isInstanceOf(StoreClosedException.class);
    store.close();
  }

  /** A transfer that another thread has begun, and that is refused when the closing one waits for it. */
  @Test
  void closesThoughATransferIsRefusedMeanwhile() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    AtomicReference<@Nullable Thread> closing = new AtomicReference<>();
    FaultyStore late =
        new FaultyStore(
            new PromptStore() {
              @Override
              public Task dump(Transfer transfer) {
                begun.countDown();
                while (!isWaiting(closing.get())) {
                  Thread.onSpinWait();
                }
                throw new StoreClosedException(name());
              }

              @Override
              public String name() {
                return "Late";
              }
            },
            SEED);
    late.configure(StoreConfig.of(Map.of()));
    late.open(StoreContext.of(null));
    FutureTask<Task> dump = new FutureTask<>(() -> late.dump(memory(IDS).transfer()));
    new Thread(dump).start();
    begun.await();
    closing.set(Thread.currentThread());
    late.close();
    assertThatThrownBy(dump::get).hasCauseInstanceOf(StoreClosedException.class);
  }

  private static boolean isWaiting(@Nullable Thread thread) {
    return thread != null && thread.getState() == Thread.State.TIMED_WAITING;
  }

  @Test
  void failsSomeShardsByRateAndMovesTheOthers() {
    store.rate(Call.LOAD, Fault.FAIL, 0.3).rate(Call.LOAD, Fault.CORRUPT, 0.2);
    open();
    dump(IDS);
    TransferMemory memory = memory(IDS).scribble();
    TransferResult result = store.load(memory.transfer()).result();
    assertThat(result.failedCount()).isBetween(1, 31);
    assertThat(result.cause()).hasMessageContaining("LOAD 1");
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (result.outcome(shard) == ShardOutcome.OK) {
        memory.check(shard);
        memory.scribble(shard);
      }
    }
    memory.checkScribbled();
    assertThat(store.struck(Call.LOAD, Fault.FAIL) + store.struck(Call.LOAD, Fault.CORRUPT))
        .isEqualTo(result.failedCount());
  }

  @Test
  void doesTheSameAgainForTheSameSeed() {
    List<String> runs = new ArrayList<>();
    for (long seed : new long[] {1, 1, 2}) {
      Store faulty =
          new FaultyStore(new MemoryStore(), seed)
              .rate(Call.DUMP, Fault.FAIL, 0.5)
              .rate(Call.LOOKUP, Fault.MISS, 0.5);
      open(faulty);
      String run = faulty.dump(memory(IDS).fill().transfer()).result().failedShards().toString();
      faulty.dump(memory(IDS).fill().transfer());
      faulty.dump(memory(IDS).fill().transfer());
      runs.add(run + faulty.lookup(IDS) + faulty.lookupPrefix(IDS));
      faulty.close();
    }
    assertThat(runs.get(1)).isEqualTo(runs.get(0));
    assertThat(runs.get(2)).isNotEqualTo(runs.get(0));
  }

  @Test
  void losesDroppedBlocksAndSaysSoAtTheNextFlush() throws InterruptedException {
    store.at(1, Call.DUMP, Fault.DROP);
    open();
    dump(IDS.slice(0, 2)).requireOk();
    dump(IDS.slice(1, 4)).requireOk();
    assertThat(store.lookup(IDS).toString()).isEqualTo("{2, 3}");
    FlushResult flushed = store.flush(Duration.ofSeconds(5));
    assertThat(flushed.failedBlocks()).isEqualTo(IDS.slice(0, 2));
    assertThat(flushed.failedCount()).isEqualTo(2);
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.cause()).hasMessageContaining("seed 42");
    assertThat(store.flush(Duration.ZERO).ok()).as("said once").isTrue();
    dump(IDS).requireOk();
    assertThat(store.lookupPrefix(IDS)).as("dumped again").isEqualTo(7);
  }

  @Test
  void holdsADelayedTransferBackUntilItIsStarted() {
    Queue<Runnable> held = new ConcurrentLinkedQueue<>();
    store.at(2, Call.DUMP, Fault.DELAY).delayedBy(held::add);
    open();
    dump(IDS.slice(0, 4)).requireOk();
    Task late = store.dump(memory(IDS.slice(4, 8)).fill().transfer());
    assertThat(late.check()).isFalse();
    assertThat(store.lookupPrefix(IDS)).isEqualTo(3);
    held.remove().run();
    late.result().requireOk();
    assertThat(store.lookupPrefix(IDS)).isEqualTo(7);
  }

  @Test
  void expiresWhatIsHeldBackWhenItIsClosed() {
    Queue<Runnable> held = new ConcurrentLinkedQueue<>();
    store.at(1, Call.LOAD, Fault.DELAY).delayedBy(held::add);
    open();
    dump(IDS);
    TransferMemory memory = memory(IDS).scribble();
    Task late = store.load(memory.transfer());
    store.close();
    assertThat(late.result().outcome(3)).isEqualTo(ShardOutcome.EXPIRED);
    held.remove().run();
    memory.checkScribbled();
  }

  @Test
  void endsShardsInAnOrderDrawnByTheSeed() {
    store.at(2, Call.LOAD, Fault.REORDER).at(3, Call.LOAD, Fault.REORDER);
    open();
    dump(IDS);
    List<Integer> plain = orderOfLoad();
    List<Integer> shuffled = orderOfLoad();
    assertThat(plain).isSorted().hasSize(32);
    assertThat(shuffled).containsExactlyInAnyOrderElementsOf(plain).isNotEqualTo(plain);
    assertThat(orderOfLoad()).isNotEqualTo(shuffled);
  }

  private List<Integer> orderOfLoad() {
    List<Integer> order = new ArrayList<>();
    TransferMemory memory = memory(IDS);
    store
        .load(memory.transfer((transfer, shard, outcome) -> order.add(shard)))
        .result()
        .requireOk();
    memory.check();
    return order;
  }

  @Test
  void closesItselfInTheMiddle() {
    store.at(2, Call.DUMP, Fault.CLOSE);
    open();
    dump(IDS.slice(0, 2)).requireOk();
    TransferResult result = dump(IDS.slice(2, 8));
    assertThat(result.okCount()).isEqualTo(12);
    assertThat(result.outcome(12)).isEqualTo(ShardOutcome.FAILED);
    assertThat(result.cause()).hasMessageContaining("DUMP 2");
    assertThatThrownBy(() -> store.lookup(IDS)).isInstanceOf(StoreClosedException.class);
    assertThatThrownBy(() -> inner.lookup(IDS)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void keepsTheCauseOfTheStoreBehind() {
    FaultyStore outer = new FaultyStore(store.at(1, Call.LOAD, Fault.FAIL), 43);
    open(outer);
    outer.dump(memory(IDS).fill().transfer()).result().requireOk();
    TransferResult result = outer.load(memory(IDS).transfer()).result();
    assertThat(result.okCount()).isZero();
    assertThat(result.cause()).hasMessageContaining("seed 42");
    outer.close();
  }

  @Test
  void refusesAPlanThatMakesNoSense() {
    assertThatThrownBy(() -> store.rate(Call.LOAD, Fault.DROP, 0.1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("DROP does not strike LOAD");
    assertThatThrownBy(() -> store.rate(Call.LOAD, Fault.FAIL, 1.1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> store.at(0, Call.LOAD, Fault.FAIL))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private void open() {
    open(store);
  }

  private static void open(Store store) {
    store.configure(
        StoreConfig.of(
            Map.of("block_size", 4096, "shard_size", 1024, "tensor_size", 512, "device_id", 0)));
    store.open(StoreContext.of(null));
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }

  private TransferResult dump(BlockIds ids) {
    return store.dump(memory(ids).fill().transfer()).result();
  }

  private TransferResult load(BlockIds ids) {
    return store.load(memory(ids).transfer()).result();
  }
}
