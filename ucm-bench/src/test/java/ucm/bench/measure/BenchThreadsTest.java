package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class BenchThreadsTest {

  @Test
  @Timeout(60)
  void whoWaitsForPartsThatNoThreadHasBegunIsToldOfTheClose() throws Exception {
    CountDownLatch busy = new CountDownLatch(2);
    FutureTask<Long> first;
    FutureTask<Long> second;
    try (BenchThreads threads = new BenchThreads(2)) {
      first = new FutureTask<>(() -> threads.time(_ -> waitForEver(busy)));
      Thread _ = Thread.ofPlatform().daemon().start(first);
      busy.await();
      second = new FutureTask<>(() -> threads.time(_ -> {}));
      Thread waiting = Thread.ofPlatform().daemon().start(second);
      // Its parts are in the queue by then.
      while (waiting.getState() != Thread.State.WAITING) {
        Thread.onSpinWait();
      }
    }
    assertThatThrownBy(() -> second.get(30, TimeUnit.SECONDS))
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(CancellationException.class);
    assertThat(first.get(30, TimeUnit.SECONDS)).as("its parts were interrupted").isPositive();
  }

  private static void waitForEver(CountDownLatch busy) {
    busy.countDown();
    try {
      new CountDownLatch(1).await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
