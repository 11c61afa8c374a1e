package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;

class ShardWorkersTest {

  private static final Duration SOON = Duration.ofSeconds(60);

  private record Shards(int size, IntConsumer action) implements ShardWorkers.Batch {
    @Override
    public void run(int index) {
      action.accept(index);
    }
  }

  private static ShardWorkers workers(int threads, int batches) {
    return new ShardWorkers("test", threads, batches, new CpuAffinity(List.of()));
  }

  @Test
  void runsEachShardOfEachBatchExactlyOnce() {
    int batches = 500;
    int size = 37;
    AtomicIntegerArray runs = new AtomicIntegerArray(batches * size);
    try (ShardWorkers workers = workers(8, batches)) {
      for (int b = 0; b < batches; b++) {
        int first = b * size;
        workers.submit(new Shards(size, i -> runs.incrementAndGet(first + i)));
      }
    }
    for (int i = 0; i < runs.length(); i++) {
      assertThat(runs.get(i)).isEqualTo(1);
    }
  }

  @Test
  void worksOnOneBatchWithSeveralThreadsAtOnce() throws InterruptedException {
    CountDownLatch together = new CountDownLatch(4);
    AtomicInteger met = new AtomicInteger();
    try (ShardWorkers workers = workers(4, 8)) {
      workers.submit(
          new Shards(
              4,
              i -> {
                together.countDown();
                if (awaits(together)) {
                  met.incrementAndGet();
                }
              }));
    }
    assertThat(met).hasValue(4);
  }

  /** The thread that is to look whether more are needed may be taken for a shard before it looks. */
  @Test
  void callsMoreThreadsWhileAllThatThereAreWait() throws InterruptedException {
    for (int round = 0; round < 300; round++) {
      CountDownLatch together = new CountDownLatch(4);
      AtomicInteger met = new AtomicInteger();
      try (ShardWorkers workers = workers(8, 8)) {
        workers.submit(
            new Shards(
                6,
                i -> {
                  if (i < 2) {
                    LockSupport.parkNanos(300_000);
                  } else {
                    together.countDown();
                    met.addAndGet(awaits(together) ? 1 : 0);
                  }
                }));
      }
      assertThat(met).hasValue(4);
    }
  }

  @Test
  void takesEachBatchThatComesWhileItsThreadsFallAsleep() throws InterruptedException {
    Random random = new Random(5);
    try (ShardWorkers workers = workers(3, 8)) {
      for (int batch = 0; batch < 3_000; batch++) {
        CountDownLatch done = new CountDownLatch(1 + random.nextInt(3));
        workers.submit(new Shards((int) done.getCount(), i -> done.countDown()));
        assertThat(awaits(done)).isTrue();
        // From at once to well after they sleep.
        LockSupport.parkNanos(random.nextInt(4) * 40_000L);
      }
    }
  }

  @Test
  void usesAllItsThreadsWhileShardsAreHeld() {
    int threads = 4 * Runtime.getRuntime().availableProcessors() + 3;
    CountDownLatch together = new CountDownLatch(threads);
    AtomicInteger met = new AtomicInteger();
    try (ShardWorkers workers = workers(threads, 8)) {
      workers.submit(
          new Shards(
              threads,
              i -> {
                together.countDown();
                if (awaits(together)) {
                  met.incrementAndGet();
                }
              }));
    }
    assertThat(met).hasValue(threads);
  }

  @Test
  void addsCompensatingThreadsWhileItsThreadsAreHeld() throws InterruptedException {
    CountDownLatch held = new CountDownLatch(2);
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(5);
    try (ShardWorkers workers = workers(2, 8)) {
      workers.submit(
          new Shards(
              2,
              i -> {
                held.countDown();
                awaits(release);
              }));
      assertThat(held.await(60, TimeUnit.SECONDS)).isTrue();
      workers.submit(new Shards(5, i -> done.countDown()));
      assertThat(workers.maxThreads()).isEqualTo(2);
      workers.compensate(1);
      assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
      release.countDown();
    } finally {
      release.countDown();
    }
  }

  @Test
  void aThreadThatWaitsRunsShardsWhileTheThreadsAreHeld() throws InterruptedException {
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch started = new CountDownLatch(1);
    try (ShardWorkers workers = workers(1, 4)) {
      workers.submit(
          new Shards(
              1,
              i -> {
                started.countDown();
                awaits(release);
              }));
      assertThat(awaits(started)).isTrue();
      AtomicInteger runs = new AtomicInteger();
      ShardWorkers.Remainder left = workers.submit(new Shards(3, i -> runs.incrementAndGet()));
      for (int i = 1; i <= 3; i++) {
        assertThat(left.runOne()).isTrue();
        assertThat(runs).hasValue(i);
      }
      assertThat(left.runOne()).isFalse();
      release.countDown();
    }
  }

  @Test
  void closesWhenTheShardsThatOthersRunHaveEnded() throws InterruptedException {
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch started = new CountDownLatch(2);
    ShardWorkers workers = workers(1, 4);
    ShardWorkers.Remainder left =
        workers.submit(
            new Shards(
                2,
                i -> {
                  started.countDown();
                  awaits(i == 0 ? release : started);
                }));
    Thread outsider = Thread.ofPlatform().start(left::runOne);
    assertThat(awaits(started)).isTrue();
    assertThat(workers.close(Duration.ofMillis(1))).isFalse();
    release.countDown();
    assertThat(workers.close(SOON)).isTrue();
    outsider.join();
  }

  @Test
  void refusesAtOnceWhenFullAndNamesTheKey() throws InterruptedException {
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch started = new CountDownLatch(1);
    ShardWorkers workers = workers(1, 2);
    try {
      workers.submit(
          new Shards(
              1,
              i -> {
                started.countDown();
                awaits(release);
              }));
      assertThat(started.await(60, TimeUnit.SECONDS)).isTrue();
      workers.submit(new Shards(4, i -> {}));
      assertThatThrownBy(
              () -> {
                workers.submit(new Shards(1, i -> {}));
                workers.submit(new Shards(1, i -> {}));
              })
          .isInstanceOf(QueueFullException.class)
          .hasMessageContaining("waiting_queue_depth");
    } finally {
      release.countDown();
      assertThat(workers.close(SOON)).isTrue();
    }
  }

  @Test
  void goesOnAfterABatchThatThrows() {
    AtomicInteger runs = new AtomicInteger();
    try (ShardWorkers workers = workers(1, 4)) {
      workers.submit(
          new Shards(
              2,
              i -> {
                throw new IllegalStateException("a broken batch");
              }));
      workers.submit(new Shards(3, i -> runs.incrementAndGet()));
    }
    assertThat(runs).hasValue(3);
  }

  @Test
  void saysWhenAThreadDoesNotEndInTimeAndRefusesNewWork() {
    CountDownLatch release = new CountDownLatch(1);
    ShardWorkers workers = workers(1, 4);
    workers.submit(new Shards(1, i -> awaits(release)));
    assertThat(workers.close(Duration.ofMillis(1))).isFalse();
    assertThatThrownBy(() -> workers.submit(new Shards(1, i -> {})))
        .isInstanceOf(StoreClosedException.class);
    release.countDown();
    assertThat(workers.close(SOON)).isTrue();
  }

  @Test
  void waitsForWhatRunsAlsoOnAnInterruptedThread() {
    Thread closing = Thread.currentThread();
    AtomicInteger ran = new AtomicInteger();
    ShardWorkers workers = workers(1, 1);
    workers.submit(
        new Shards(
            1,
            i -> {
              // Until close has seen it.
              while (closing.isInterrupted() || closing.getState() == Thread.State.RUNNABLE) {
                Thread.onSpinWait();
              }
              ran.incrementAndGet();
            }));
    closing.interrupt();
    boolean ended = workers.close(SOON);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(ended).isTrue();
    assertThat(ran).hasValue(1);
  }

  private static boolean awaits(CountDownLatch latch) {
    try {
      return latch.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
