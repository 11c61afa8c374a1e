package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ThreadDemandTest {

  private static final long NANOS = 1_000_000;

  private static ThreadDemand after(int samples, double busyShare, boolean hasWaited) {
    ThreadDemand demand = new ThreadDemand(2, 128);
    take(demand, samples, busyShare, hasWaited);
    return demand;
  }

  private static void take(ThreadDemand demand, int samples, double busyShare, boolean hasWaited) {
    for (int i = 0; i < samples; i++) {
      demand.worked(NANOS, (long) (busyShare * NANOS), hasWaited);
    }
  }

  @Test
  void beginsWithOneThreadPerProcessorOrFewerWhenNoMoreAreAllowed() {
    assertThat(new ThreadDemand(2, 128).threads()).isEqualTo(2);
    assertThat(new ThreadDemand(8, 3).threads()).isEqualTo(3);
  }

  @ParameterizedTest
  @CsvSource({"1.0, 2", "0.9, 2", "0.5, 4", "0.1, 20", "0.01, 128", "0.0, 128"})
  void followsTheShareOfTimeThatThreadsAreBusy(double busyShare, int threads) {
    assertThat(after(100, busyShare, true).threads()).isBetween(threads - 1, threads);
  }

  @Test
  void takesAThreadThatDidNotWaitForBusyHoweverLittleItGotOfAProcessor() {
    assertThat(after(100, 0.01, false).threads()).isEqualTo(2);
  }

  @Test
  void isNotMovedByOneLongWait() {
    assertThat(after(1, 0, true).threads()).isEqualTo(2);
  }

  @Test
  void comesDownAgainWhenThreadsAreBusy() {
    ThreadDemand demand = after(100, 0, true);
    take(demand, 100, 1, true);
    assertThat(demand.threads()).isEqualTo(2);
  }
}
