package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class ThreadEndTest {

  @Test
  void anInterruptDoesNotEndTheWaitAndIsKept() throws Exception {
    CountDownLatch mayEnd = new CountDownLatch(1);
    Thread ended = Thread.ofPlatform().start(() -> {});
    Thread working =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    mayEnd.await();
                  } catch (InterruptedException e) {
                    throw new AssertionError(e);
                  }
                });
    boolean[] seen = new boolean[2];
    Thread waiting =
        Thread.ofPlatform()
            .start(
                () -> {
                  ThreadEnd.await(List.of(ended, working));
                  seen[0] = working.isAlive();
                  seen[1] = Thread.currentThread().isInterrupted();
                });
    waiting.interrupt();
    // It has taken the interrupt up, and waits again.
    while (waiting.isInterrupted() || waiting.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    mayEnd.countDown();
    assertThat(waiting.join(Duration.ofSeconds(30))).isTrue();
    assertThat(seen).containsExactly(false, true);
  }
}
