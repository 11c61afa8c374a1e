package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CompensatingThreadsTest {

  private static final ShardWorkers.Batch BATCH =
      new ShardWorkers.Batch() {
        @Override
        public int size() {
          return 1;
        }

        @Override
        public void run(int index) {}
      };

  private final ReentrantLock lock = new ReentrantLock();
  private final BatchQueue queue =
      new BatchQueue("test", new ShardWorkers.Limits(8, "waiting_key", 8, "running_key"));
  private final ThreadDemand demand = new ThreadDemand(1, 4);
  private final AtomicInteger working = new AtomicInteger();

  private CompensatingThreads compensating(long tickNanos) {
    return new CompensatingThreads(lock, tickNanos, queue, demand, working);
  }

  private boolean stand(CompensatingThreads compensating) {
    lock.lock();
    try {
      return compensating.stand();
    } finally {
      lock.unlock();
    }
  }

  @Test
  void compensatesForAThreadWhoseShardDoesNotEnd() {
    queue.add(BATCH, 1);
    working.set(demand.threads());
    CompensatingThreads compensating = compensating(1);
    assertThat(stand(compensating)).isTrue();
    assertThat(demand.threads()).isEqualTo(2);
    assertThat(compensating.isTaken()).isFalse();
  }

  @Test
  void looksAtOnceWhenItIsWoken() {
    CompensatingThreads compensating = compensating(TimeUnit.HOURS.toNanos(1));
    CompletableFuture<Boolean> stood = CompletableFuture.supplyAsync(() -> stand(compensating));
    while (!compensating.isTaken()) {
      Thread.onSpinWait();
    }
    // It lets the lock go only to wait.
    lock.lock();
    try {
      queue.add(BATCH, 1);
      compensating.wake();
    } finally {
      lock.unlock();
    }
    assertThat(stood.join()).isTrue();
    assertThat(demand.threads()).as("it was wanted anyway").isEqualTo(1);
  }

  @Test
  void leavesWhenThereIsNoWorkForLong() {
    CompensatingThreads compensating = compensating(1);
    assertThat(stand(compensating)).isFalse();
    assertThat(compensating.isTaken()).isFalse();
  }

  @Test
  void leavesAtOnceWhenNoWorkWillCome() {
    queue.close();
    assertThat(stand(compensating(TimeUnit.HOURS.toNanos(1)))).isFalse();
  }

  @Test
  void keepsAnInterruptForWhoeverAsksAfterwards() {
    Thread.currentThread().interrupt();
    assertThat(stand(compensating(1))).isFalse();
    assertThat(Thread.interrupted()).isTrue();
  }
}
