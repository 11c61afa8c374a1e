package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

final class TransferTaskTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1, 1, 2);
  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 0, 1);
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory());

  @Test
  void isTerminalWhenItsLastShardHasEnded() throws InterruptedException {
    TransferTask task = new TransferTask(7, transfer(3, ShardListener.NONE));
    assertThat(task.id()).isEqualTo(7);
    task.ok(2);
    task.end(0, ShardOutcome.MISSING, null);
    assertThat(task.check()).isFalse();
    assertThat(task.hasEnded(0)).isTrue();
    assertThat(task.hasEnded(1)).isFalse();
    assertThat(task).hasToString("task 7 of Transfer[3 shards, 3 bytes], 1 shards open");
    assertThatThrownBy(task::result)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("task 7");
    task.ok(1);
    assertThat(task.check()).isTrue();
    assertThat(task.await(Duration.ZERO).okCount()).isEqualTo(2);
    assertThat(task.result().outcome(0)).isEqualTo(ShardOutcome.MISSING);
    assertThat(task.transfer().shardCount()).isEqualTo(3);
  }

  @Test
  void isTerminalAtOnceWithoutShards() {
    TransferTask task = new TransferTask(1, transfer(0, ShardListener.NONE));
    assertThat(task.check()).isTrue();
    assertThat(task.result().ok()).isTrue();
    AtomicInteger runs = new AtomicInteger();
    task.whenTerminal(runs::incrementAndGet);
    assertThat(runs).hasValue(1);
  }

  @Test
  void endsWhileAnotherThreadHoldsItsMonitor() throws Exception {
    TransferTask task = new TransferTask(1, transfer(2, ShardListener.NONE));
    synchronized (task) {
      Future<?> ended =
          THREADS.submit(
              () -> {
                task.whenTerminal(() -> {});
                task.end(0, ShardOutcome.FAILED, new StoreException("on purpose"));
                task.end(1, ShardOutcome.MISSING, null);
              });
      ended.get(1, TimeUnit.MINUTES);
    }
    assertThat(task.result().okCount()).isZero();
  }

  @Test
  void letsItsStoreTidyUpBeforeAnybodySeesItTerminal() {
    TransferTask task = new TransferTask(1, transfer(2, ShardListener.NONE));
    List<Boolean> seen = new ArrayList<>();
    task.beforeTerminal(() -> seen.add(task.check()));
    task.whenTerminal(() -> seen.add(task.check()));
    task.ok(0);
    assertThat(seen).isEmpty();
    task.ok(1);
    assertThat(seen).containsExactly(false, true);
    task.beforeTerminal(() -> seen.add(task.check()));
    assertThat(seen).as("at once").containsExactly(false, true, true);
  }

  @Test
  void refusesToEndAShardTwice() {
    List<Integer> told = new ArrayList<>();
    TransferTask task =
        new TransferTask(9, transfer(2, (transfer, shard, outcome) -> told.add(shard)));
    task.ok(0);
    assertThatThrownBy(() -> task.end(0, ShardOutcome.FAILED, new StoreException("late")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("shard 0 of task 9 ended twice; now FAILED");
    assertThat(task.check()).as("shard 1 is still open").isFalse();
    task.ok(1);
    assertThat(told).containsExactly(0, 1);
    assertThat(task.result().ok()).isTrue();
    assertThat(task.result().cause()).as("the second end left nothing").isNull();
  }

  @Test
  void letsOneOnlyBeginAShard() {
    TransferTask task = new TransferTask(1, transfer(40, ShardListener.NONE));
    assertThat(task.hasBegun(33)).isFalse();
    assertThat(task.begin(33)).isTrue();
    assertThat(task.begin(33)).isFalse();
    assertThat(task.hasBegun(33)).isTrue();
    assertThat(task.hasEnded(33)).as("it is under way").isFalse();
    assertThat(task.begin(1)).as("its bits are another word's").isTrue();
    task.ok(33);
    assertThat(task.begin(33)).isFalse();
    for (int i = 0; i < 40; i++) {
      assertThat(task.hasBegun(i)).as("shard %d", i).isEqualTo(i == 1 || i == 33);
      assertThat(task.hasEnded(i)).as("shard %d", i).isEqualTo(i == 33);
    }
  }

  @Test
  void doesNotLetAShardBeginThatHasEnded() {
    TransferTask task = new TransferTask(1, transfer(2, ShardListener.NONE));
    task.end(1, ShardOutcome.EXPIRED, null);
    assertThat(task.hasBegun(1)).isTrue();
    assertThat(task.begin(1)).isFalse();
    assertThat(task.begin(0)).isTrue();
  }

  @Test
  void knowsNoShardsBeyondItsOwn() {
    TransferTask task = new TransferTask(1, transfer(3, ShardListener.NONE));
    for (int shard : new int[] {-1, 3, 31}) {
      assertThatThrownBy(() -> task.ok(shard)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> task.end(shard, ShardOutcome.FAILED, null))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> task.begin(shard)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> task.hasBegun(shard)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> task.hasEnded(shard)).isInstanceOf(IndexOutOfBoundsException.class);
    }
    for (int shard = 0; shard < 3; shard++) {
      task.ok(shard);
    }
    assertThat(task.result().ok()).isTrue();
    assertThatThrownBy(() -> task.result().outcome(3))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  @SuppressWarnings("NullAway") // What a plugin without annotations may do.
  void takesNoOutcomeForNone() {
    TransferTask task = new TransferTask(1, transfer(1, ShardListener.NONE));
    assertThatThrownBy(() -> task.end(0, null, null)).isInstanceOf(NullPointerException.class);
    assertThat(task.hasBegun(0)).isFalse();
    task.end(0, ShardOutcome.MISSING, null);
    assertThat(task.result().outcome(0)).isEqualTo(ShardOutcome.MISSING);
  }

  @Test
  void keepsTheFirstCause() {
    TransferTask task = new TransferTask(1, transfer(3, ShardListener.NONE));
    StoreException first = new StoreException("first");
    task.ok(0);
    task.end(1, ShardOutcome.FAILED, first);
    task.end(2, ShardOutcome.EXPIRED, new StoreException("second"));
    assertThat(task.result().cause()).isSameAs(first);
  }

  @Test
  void tellsTheListenerBeforeItIsTerminal() {
    AtomicReference<TransferTask> task = new AtomicReference<>();
    List<String> told = new ArrayList<>();
    Transfer transfer =
        transfer(
            2,
            (of, shard, outcome) -> {
              assertThat(of).isSameAs(task.get().transfer());
              told.add(shard + " " + outcome + " " + task.get().check());
            });
    task.set(new TransferTask(1, transfer));
    task.get().whenTerminal(() -> told.add("completed " + task.get().check()));
    task.get().end(1, ShardOutcome.CORRUPT, null);
    task.get().ok(0);
    assertThat(told).containsExactly("1 CORRUPT false", "0 OK false", "completed true");
  }

  @Test
  void isTerminalThoughItsListenerThrows() {
    TransferTask task =
        new TransferTask(
            1,
            transfer(
                1,
                (transfer, shard, outcome) -> {
                  throw new IllegalStateException("a listener must not throw");
                }));
    assertThatThrownBy(() -> task.ok(0)).hasMessage("a listener must not throw");
    assertThat(task.check()).isTrue();
    assertThat(task.result().ok()).isTrue();
  }

  @Test
  void saysWhatIsOpenWhenTheTimeIsOver() {
    TransferTask task = new TransferTask(5, transfer(2, ShardListener.NONE));
    task.ok(0);
    assertThatThrownBy(() -> task.await(Duration.ofMillis(1)))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessage(
            "task 5 has not completed after 1 ms: 1 of 2 shards are open; the memory is still in"
                + " use");
    assertThatThrownBy(() -> task.await(Duration.ofSeconds(-1)))
        .isInstanceOf(StoreTimeoutException.class);
    task.ok(1);
    assertThat(task.result().ok()).as("goes on after a timeout").isTrue();
  }

  @Test
  void waitsForAnyLengthOfTime() throws Exception {
    TransferTask task = new TransferTask(1, transfer(1, ShardListener.NONE));
    try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
      Future<TransferResult> result =
          threads.submit(() -> task.await(ChronoUnit.FOREVER.getDuration()));
      task.ok(0);
      assertThat(result.get().ok()).isTrue();
    }
  }

  @Test
  void hasTheThreadThatWaitsHelpFirst() throws Exception {
    TransferTask task =
        new TransferTask(1, transfer(2, ShardListener.NONE)) {
          private int next;

          @Override
          protected boolean help() {
            ok(next++);
            return true;
          }
        };
    assertThatThrownBy(() -> task.await(Duration.ZERO)).isInstanceOf(StoreTimeoutException.class);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> task.await(Duration.ofDays(1)))
        .isInstanceOf(InterruptedException.class);
    assertThat(task.hasBegun(0)).as("no time to help; it was to stop").isFalse();
    assertThat(task.await(Duration.ofDays(1)).ok()).isTrue();
  }

  @Test
  void leavesTheInterruptToTheCaller() {
    TransferTask task = new TransferTask(1, transfer(1, ShardListener.NONE));
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> task.await(Duration.ofDays(1)))
        .isInstanceOf(InterruptedException.class);
    assertThat(Thread.interrupted()).as("cleared, as by every blocking method").isFalse();
    assertThat(task.check()).isFalse();
  }

  @Test
  void runsActionsOnTheThreadThatEndsIt() throws Exception {
    TransferTask task = new TransferTask(1, transfer(1, ShardListener.NONE));
    List<Thread> runners = new ArrayList<>();
    task.whenTerminal(() -> runners.add(Thread.currentThread()));
    task.whenTerminal(() -> runners.add(Thread.currentThread()));
    Thread ender = Thread.ofPlatform().start(() -> task.ok(0));
    ender.join();
    task.whenTerminal(() -> runners.add(Thread.currentThread()));
    assertThat(runners).containsExactly(ender, ender, Thread.currentThread());
  }

  @Test
  void endsShardsFromManyThreads() throws Exception {
    int shards = 4000;
    int threadCount = 4;
    for (int round = 0; round < 5; round++) {
      AtomicInteger told = new AtomicInteger();
      TransferTask task =
          new TransferTask(
              1, transfer(shards, (transfer, shard, outcome) -> told.getAndIncrement()));
      AtomicInteger ended = new AtomicInteger();
      AtomicInteger toldAtTheEnd = new AtomicInteger();
      AtomicInteger terminals = new AtomicInteger();
      task.whenTerminal(
          () -> {
            toldAtTheEnd.set(told.get());
            terminals.incrementAndGet();
          });
      // Every shard is ended by every thread; one of them succeeds.
      atOnce(
          threadCount,
          thread -> {
            for (int i = 0; i < shards; i++) {
              try {
                task.ok((i + thread * shards / threadCount) % shards);
                ended.incrementAndGet();
              } catch (IllegalStateException second) {
                assertThat(second).hasMessageContaining("ended twice");
              }
            }
          });
      assertThat(ended).hasValue(shards);
      assertThat(told).hasValue(shards);
      assertThat(toldAtTheEnd).hasValue(shards);
      assertThat(terminals).hasValue(1);
      assertThat(task.result().okCount()).isEqualTo(shards);
    }
  }

  @Test
  void oneThreadMovesAShardHoweverManyTry() throws Exception {
    int shards = 2000;
    int threadCount = 4;
    ShardOutcome[] outcomes = ShardOutcome.values();
    for (int round = 0; round < 20; round++) {
      TransferTask task = new TransferTask(1, transfer(shards, ShardListener.NONE));
      int[] begunBy = new int[shards];
      AtomicInteger begun = new AtomicInteger();
      // All begin at the same shard; its end tells which thread moved it.
      atOnce(
          threadCount,
          thread -> {
            for (int i = 0; i < shards; i++) {
              if (task.begin(i)) {
                begunBy[i] = thread;
                begun.incrementAndGet();
                task.end(i, outcomes[thread], null);
              }
            }
          });
      assertThat(begun).hasValue(shards);
      assertThat(task.check()).isTrue();
      TransferResult result = task.result();
      int ok = 0;
      for (int i = 0; i < shards; i++) {
        assertThat(result.outcome(i)).as("shard %d", i).isEqualTo(outcomes[begunBy[i]]);
        ok += outcomes[begunBy[i]] == ShardOutcome.OK ? 1 : 0;
      }
      assertThat(result.okCount()).isEqualTo(ok);
    }
  }

  @Test
  void losesNoOutcomeOfShardsThatEndBadlyAtOnce() throws Exception {
    for (int round = 0; round < 2000; round++) {
      TransferTask task = new TransferTask(round, transfer(2, ShardListener.NONE));
      atOnce(
          2,
          thread ->
              task.end(thread, thread == 0 ? ShardOutcome.CORRUPT : ShardOutcome.MISSING, null));
      assertThat(task.result().outcome(0)).as("round %d", round).isEqualTo(ShardOutcome.CORRUPT);
      assertThat(task.result().outcome(1)).as("round %d", round).isEqualTo(ShardOutcome.MISSING);
    }
  }

  @Test
  void runsEachActionOnceHoweverCloseToTheEndItComes() throws Exception {
    for (int round = 0; round < 2000; round++) {
      TransferTask task = new TransferTask(round, transfer(1, ShardListener.NONE));
      AtomicInteger runs = new AtomicInteger();
      atOnce(
          2,
          thread -> {
            if (thread == 0) {
              task.ok(0);
            } else {
              task.whenTerminal(runs::incrementAndGet);
            }
          });
      assertThat(runs).as("round %d", round).hasValue(1);
    }
  }

  private interface Job {
    void run(int thread) throws Exception;
  }

  private static void atOnce(int threadCount, Job job) throws Exception {
    CountDownLatch start = new CountDownLatch(threadCount);
    List<Future<?>> jobs = new ArrayList<>();
    for (int i = 0; i < threadCount; i++) {
      int thread = i;
      jobs.add(
          THREADS.submit(
              () -> {
                start.countDown();
                start.await();
                job.run(thread);
                return null;
              }));
    }
    for (Future<?> one : jobs) {
      one.get();
    }
  }

  private static Transfer transfer(int shards, ShardListener listener) {
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    for (int i = 0; i < shards; i++) {
      builder.shard(i / 2, 0, i % 2).piece(MEMORY, 0);
    }
    return builder.build(listener);
  }
}
