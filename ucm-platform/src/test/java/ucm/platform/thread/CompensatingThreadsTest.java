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

  private CompensatingThreads standBy(long tickNanos) {
    return new CompensatingThreads(lock, tickNanos, queue, demand, working);
  }

  private boolean stand(CompensatingThreads standBy) {
    lock.lock();
    try {
      return standBy.stand();
    } finally {
      lock.unlock();
    }
  }

  @Test
  void worksInPlaceOfAThreadWhoseShardDoesNotEnd() {
    queue.add(BATCH, 1);
    working.set(demand.threads());
    CompensatingThreads standBy = standBy(1);
    assertThat(stand(standBy)).isTrue();
    assertThat(demand.threads()).isEqualTo(2);
    assertThat(standBy.isTaken()).isFalse();
  }

  @Test
  void looksAtOnceWhenItIsWoken() {
    CompensatingThreads standBy = standBy(TimeUnit.HOURS.toNanos(1));
    CompletableFuture<Boolean> stood = CompletableFuture.supplyAsync(() -> stand(standBy));
    while (!standBy.isTaken()) {
      Thread.onSpinWait();
    }
    // It lets the lock go only to wait.
    lock.lock();
    try {
      queue.add(BATCH, 1);
      standBy.wake();
    } finally {
      lock.unlock();
    }
    assertThat(stood.join()).isTrue();
    assertThat(demand.threads()).as("it was wanted anyway").isEqualTo(1);
  }

  @Test
  void leavesWhenThereIsNoWorkForLong() {
    CompensatingThreads standBy = standBy(1);
    assertThat(stand(standBy)).isFalse();
    assertThat(standBy.isTaken()).isFalse();
  }

  @Test
  void leavesAtOnceWhenNoWorkWillCome() {
    queue.close();
    assertThat(stand(standBy(TimeUnit.HOURS.toNanos(1)))).isFalse();
  }

  @Test
  void keepsAnInterruptForWhoeverAsksAfterwards() {
    Thread.currentThread().interrupt();
    assertThat(stand(standBy(1))).isFalse();
    assertThat(Thread.interrupted()).isTrue();
  }
}
