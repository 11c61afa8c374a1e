package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

final class AbstractStoreTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final BlockLayout LAYOUT = BlockLayout.uniform(16, 16, 32);
  private static final BlockIds ID = BlockIds.of(1, 2);

  private final Arena arena = Arena.ofShared();
  private final HeldStore store = new HeldStore();

  @AfterEach
  void close() {
    store.going.countDown();
    store.close();
    arena.close();
  }

  private LongSupplier clock = System::nanoTime;

  private void open(Map<String, Object> more) {
    Map<String, Object> all = new LinkedHashMap<>(Map.of("device_id", 0, "block_size", 32));
    all.put("tensor_size", 16);
    all.put("shard_size", 16);
    all.putAll(more);
    store.configure(StoreConfig.of(all));
    store.open(
        new StoreContext() {
          @Override
          public Store next() {
            return null;
          }

          @Override
          public LongSupplier nanoClock() {
            return clock;
          }
        });
  }

  private Transfer transfer() {
    MemoryRegion memory = MemoryRegion.host(arena.allocate(32));
    return Transfer.packed(LAYOUT)
        .shard(ID, 0, 0)
        .piece(memory, 0)
        .shard(ID, 0, 1)
        .piece(memory, 16)
        .build();
  }

  @Test
  void endsAtTheDeadlineWhatHasNotBegun() throws InterruptedException {
    open(Map.of("timeout_ms", 50));
    Task task = store.dump(transfer());
    store.begun.take();
    Task waiting = store.load(transfer());
    assertThat(waiting.await(PATIENCE).failedShards().cardinality()).isEqualTo(2);
    assertThat(waiting.result().outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(waiting.result().cause())
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("Held task 2")
        .hasMessageContaining("timeout_ms 50");
    assertThat(task.check()).as("a shard that has begun is waited for").isFalse();
    store.going.countDown();
    assertThat(task.await(PATIENCE).outcome(0)).isEqualTo(ShardOutcome.OK);
    assertThat(task.result().outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
  }

  @Test
  void boundsTasksAndShards() throws InterruptedException {
    open(Map.of("waiting_queue_depth", 2, "running_queue_depth", 3));
    store.load(transfer());
    assertThatThrownBy(() -> store.load(transfer()))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("Held shards is full (2 waiting)")
        .hasMessageContaining("running_queue_depth");
    store.refusing = true;
    assertThatThrownBy(() -> store.load(one())).hasMessage("not today");
    store.refusing = false;
    Task last = store.load(one());
    assertThatThrownBy(() -> store.dump(one()))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("Held tasks is full (2 waiting)")
        .hasMessageContaining("waiting_queue_depth");
    store.going.countDown();
    last.await(PATIENCE).requireOk();
    store.load(one()).await(PATIENCE).requireOk();
  }

  private Transfer one() {
    MemoryRegion memory = MemoryRegion.host(arena.allocate(16));
    return Transfer.packed(LAYOUT).shard(ID, 0, 1).piece(memory, 0).build();
  }

  @Test
  void refusesWhatItCannotMove() {
    open(Map.of());
    BlockLayout other = BlockLayout.uniform(16, 32, 32);
    assertThatThrownBy(() -> store.load(Transfer.packed(other).build()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(other.toString())
        .hasMessageContaining("does not fit Held, which is configured for " + LAYOUT);
    MemoryRegion device = MemoryRegion.device(0, 4096, 16);
    Transfer onDevice = Transfer.packed(LAYOUT).shard(ID, 0, 0).piece(device, 0).build();
    assertThatThrownBy(() -> store.dump(onDevice)).hasMessageContaining("as in Cache|Held");
  }

  @Test
  void flushWaitsForDumpsAndReportsEachFailureOnce() throws InterruptedException {
    open(Map.of());
    Task dump = store.dump(transfer());
    store.begun.take();
    store.load(one());
    assertThat(store.flush(Duration.ZERO)).isEqualTo(new FlushResult(1, BlockIds.empty(), 0, null));
    store.fault = new IOException("no room");
    dump.whenTerminal(() -> store.failed.add(flushed()));
    store.going.countDown();
    FlushResult told = store.failed.take();
    assertThat(told.failedBlocks()).isEqualTo(ID);
    assertThat(told.failedCount()).isOne();
    assertThat(told.cause()).hasMessage("no room");
    assertThat(flushed().ok()).isTrue();
    assertThat(store.counted.get()).as("blocks that failed").isOne();
  }

  @Test
  void flushReportsWhatIsPastItsDeadlineAsFailed() throws InterruptedException {
    AtomicLong clockNanos = new AtomicLong();
    clock = clockNanos::get;
    open(Map.of());
    store.load(one());
    store.begun.take();
    Task dump = store.dump(one());
    assertThat(store.flush(Duration.ZERO).pendingBlocks()).isOne();
    clockNanos.addAndGet(Duration.ofDays(1).toNanos());
    FlushResult told = store.flush(Duration.ZERO);
    assertThat(told.pendingBlocks()).isZero();
    assertThat(told.failedBlocks()).isEqualTo(ID);
    assertThat(dump.result().outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
  }

  private FlushResult flushed() {
    try {
      return store.flush(PATIENCE);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void flushWaitsForADumpThatIsNotSettled() throws InterruptedException {
    open(Map.of());
    store.settlesLater = true;
    store.going.countDown();
    TransferTask dump = (TransferTask) store.dump(one());
    dump.await(PATIENCE).requireOk();
    assertThat(store.flush(Duration.ZERO).pendingBlocks()).isOne();
    store.settle(dump);
    assertThat(flushed().ok()).isTrue();
  }

  @Test
  void aDumpIsToldWhenSomebodyWaitsUntilItIsSettled() throws InterruptedException {
    open(Map.of());
    store.settlesLater = true;
    store.going.countDown();
    TransferTask dump = (TransferTask) store.dump(one());
    CountDownLatch ended = new CountDownLatch(1);
    dump.whenTerminal(ended::countDown);
    assertThat(ended.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    CountDownLatch told = new CountDownLatch(1);
    dump.whenSettled(told::countDown);
    assertThat(store.awaited).isOne();
    assertThat(told.getCount()).isOne();
    store.settle(dump);
    assertThat(told.getCount()).isZero();
    dump.whenSettled(told::countDown);
    assertThat(store.awaited).as("nothing to wait for").isOne();
  }

  @Test
  void closeWaitsForTasksAndThenReleases() throws InterruptedException {
    open(Map.of());
    Task task = store.dump(transfer());
    store.begun.take();
    Thread first = Thread.ofPlatform().start(store::close);
    Thread second = Thread.ofPlatform().start(store::close);
    assertThatThrownBy(
            () -> {
              while (true) {
                store.lookup(ID);
                Thread.onSpinWait();
              }
            })
        .isInstanceOf(StoreClosedException.class);
    assertThat(store.events).isEmpty();
    store.going.countDown();
    first.join();
    second.join();
    task.result().requireOk();
    assertThat(store.events).containsExactly("closed with no thread");
  }

  @Test
  void closeWaitsForADumpThatIsNotSettled() throws InterruptedException {
    open(Map.of());
    store.settlesLater = true;
    store.going.countDown();
    TransferTask dump = (TransferTask) store.dump(one());
    dump.await(PATIENCE).requireOk();
    Thread closing = Thread.ofPlatform().start(store::close);
    while (closing.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    assertThat(store.events).isEmpty();
    store.settle(dump);
    closing.join();
    assertThat(store.events).containsExactly("closed with no thread");
  }

  @Test
  void closeGivesUpWhatHangsAtTheDeadline() throws InterruptedException {
    // Else the deadline may come before the worker.
    clock = () -> 0;
    open(Map.of("timeout_ms", 20));
    Task task = store.dump(transfer());
    store.begun.take();
    store.close();
    assertThat(store.events).containsExactly("1 open", "closed with a thread");
    store.going.countDown();
    assertThat(task.await(PATIENCE).outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
  }

  @Test
  void anInterruptedThreadClosesWithoutWaitingForTasks() throws InterruptedException {
    open(Map.of());
    Task task = store.dump(transfer());
    store.begun.take();
    Thread.currentThread().interrupt();
    store.close();
    assertThat(Thread.interrupted()).as("kept").isTrue();
    assertThat(store.events).containsExactly("1 open", "closed with a thread");
    store.going.countDown();
    assertThat(task.await(PATIENCE).outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
  }

  @Test
  void isClosedWhenOneOfItsThreadsEndsByAnError() throws InterruptedException {
    open(Map.of());
    store.newThreads("broken").newThread(() -> store.fail()).start();
    assertThat(store.closed.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThatThrownBy(() -> store.lookup(ID)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void releasesItsWorkersWhenItCannotBeOpened() throws InterruptedException {
    store.unopened = new IOException("nothing there");
    assertThatThrownBy(() -> open(Map.of()))
        .isInstanceOf(StoreException.class)
        .hasMessage("Held cannot be opened: java.io.IOException: nothing there");
    assertThatThrownBy(() -> store.lookup(ID)).isInstanceOf(StoreClosedException.class);
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("ucm-held-deadline")) {
        assertThat(thread.join(PATIENCE)).isTrue();
      }
    }
    store.close();
    assertThat(store.events).isEmpty();
  }

  @Test
  void looksAPrefixUpAPartAtATime() {
    open(Map.of());
    long[] words = new long[2 * 200];
    for (int i = 0; i < 200; i++) {
      words[2 * i + 1] = i;
    }
    BlockIds ids = BlockIds.wrap(words);
    store.present = 150;
    assertThat(store.lookupPrefix(ids)).isEqualTo(149);
    assertThat(store.asked).containsExactly(64, 64, 64);
    store.present = 128;
    assertThat(store.lookupPrefix(ids.slice(0, 128))).isEqualTo(127);
    assertThat(store.lookupPrefix(BlockIds.empty())).isEqualTo(-1);
  }

  /** A store with one worker, which waits in its first shard until it may go on. */
  @StoreName("Held")
  private static final class HeldStore extends AbstractStore {

    final CountDownLatch going = new CountDownLatch(1);
    final CountDownLatch closed = new CountDownLatch(1);
    final BlockingQueue<TransferTask> begun = new ArrayBlockingQueue<>(100);
    final BlockingQueue<FlushResult> failed = new ArrayBlockingQueue<>(100);
    final List<String> events = new ArrayList<>();
    final List<Integer> asked = new ArrayList<>();
    volatile Exception fault;
    IOException unopened;
    boolean refusing;
    boolean settlesLater;
    int awaited;
    int present;
    final AtomicInteger counted = new AtomicInteger();
    private Executor workers;

    HeldStore() {
      // Its worker hangs in some tests, and ends at once in the others.
      super(null, Duration.ofMillis(200));
    }

    @Override
    public List<ConfigKey<?>> configKeys() {
      return CommonKeys.with(CommonKeys.RUNNING_QUEUE_DEPTH);
    }

    @Override
    protected void doOpen(StoreContext context) throws IOException {
      workers = newWorkers("io", 1);
      if (unopened != null) {
        throw unopened;
      }
    }

    @Override
    protected BitSet doLookup(BlockIds ids) {
      asked.add(ids.size());
      BitSet found = new BitSet();
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, ids.low(i) < present);
      }
      return found;
    }

    @Override
    protected TransferTask newTask(long id, Transfer transfer, boolean isDump) {
      return !settlesLater
          ? super.newTask(id, transfer, isDump)
          : new TransferTask(id, transfer) {
            @Override
            protected boolean settlesWhenCompleted() {
              return false;
            }

            @Override
            protected void settlingIsAwaited() {
              awaited++;
            }

            @Override
            protected void collectPending(Set<BlockIds> pending) {
              pending.add(ID);
            }
          };
    }

    @Override
    protected void doLoad(TransferTask task) {
      if (refusing) {
        throw new StoreException("not today");
      }
      workers.execute(() -> task.moveAll((_, _) -> move(task)));
    }

    @Override
    protected void doDump(TransferTask task) {
      doLoad(task);
    }

    private ShardOutcome move(TransferTask task) throws Exception {
      begun.add(task);
      going.await();
      if (fault != null) {
        throw fault;
      }
      return ShardOutcome.OK;
    }

    @Override
    protected void countFailedDump() {
      counted.incrementAndGet();
    }

    void settle(TransferTask dump) {
      settled(dump);
    }

    void fail() {
      throw new OutOfMemoryError("thrown by a test");
    }

    @Override
    protected void closesBefore(int openTasks) {
      events.add(openTasks + " open");
    }

    @Override
    protected void doClose() {
      boolean alive =
          Thread.getAllStackTraces().keySet().stream()
              .anyMatch(thread -> thread.getName().startsWith("ucm-held-io"));
      events.add(alive ? "closed with a thread" : "closed with no thread");
      closed.countDown();
    }
  }
}
