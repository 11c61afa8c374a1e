package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ParkedThreadsTest {

  private final List<Long> all = AllowedCores.now();
  private final ReentrantLock lock = new ReentrantLock();
  private final ParkedThreads sleepers = new ParkedThreads(lock);
  private final BlockingQueue<List<Long>> awake = new LinkedBlockingQueue<>();

  @AfterEach
  void callAll() {
    lock.lock();
    try {
      sleepers.callAll();
    } finally {
      lock.unlock();
    }
  }

  /** A thread that sleeps until it is called, and then says where it may run; its folder. */
  private Path sleeper() throws InterruptedException {
    BlockingQueue<Path> folder = new LinkedBlockingQueue<>();
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              lock.lock();
              try {
                folder.add(AllowedCores.thread());
                sleepers.sleep(new SleepAffinity());
                awake.add(AllowedCores.now());
              } finally {
                lock.unlock();
              }
            });
    return folder.take();
  }

  /** Where a thread may wake, once it sleeps. */
  private List<Long> half(Path thread) throws InterruptedException {
    List<Long> cores = AllowedCores.of(thread);
    while (cores.equals(all)) {
      TimeUnit.MILLISECONDS.sleep(1);
      cores = AllowedCores.of(thread);
    }
    return cores;
  }

  private boolean callOne() {
    lock.lock();
    try {
      return sleepers.callOne();
    } finally {
      lock.unlock();
    }
  }

  @Test
  void thoseCalledOneAfterTheOtherWakeOnDifferentProcessorsAndThenRunAnywhere() throws Exception {
    assumeThat(all.size()).as("processors").isBetween(2, 4);
    List<Long> first = half(sleeper());
    List<Long> second = half(sleeper());
    List<Long> third = half(sleeper());
    assertThat(second).doesNotContainAnyElementsOf(first);
    assertThat(third).isEqualTo(first);

    assertThat(callOne()).isTrue();
    assertThat(awake.take()).isEqualTo(all);

    assertThat(half(sleeper())).as("in place of the third").isEqualTo(third);
  }

  @Test
  void nobodyIsCalledTwice() throws Exception {
    sleeper();
    assertThat(callOne()).isTrue();
    assertThat(callOne()).isFalse();
    awake.take();
    assertThat(sleepers.called()).isZero();
  }
}
