package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

class LayerBarrierTest {

  @Test
  void layerEndsAfterItsLoadAndItsShareOfTheCompute() throws InterruptedException {
    EngineClock.Virtual clock = new EngineClock.Virtual();
    LayerBarrier barrier = new LayerBarrier(clock, 1, 4);
    clock.waitUntil(1000);
    barrier.begin(400);
    barrier.compute(0, 0);
    assertThat(clock.nanos()).isEqualTo(1100);
    clock.waitUntil(1150);
    barrier.compute(0, 30);
    assertThat(clock.nanos()).as("a late wake-up does not add up").isEqualTo(1230);
    barrier.compute(0, 0);
    assertThat(clock.nanos()).isEqualTo(1330);
  }

  @Test
  void allRanksWaitForTheSlowestAndLearnWhatOthersCouldNotLoad() throws Exception {
    long[] reached = new long[2];
    // Waits for nothing: only what is waited until matters.
    EngineClock clock =
        new EngineClock() {
          @Override
          public long nanos() {
            return 0;
          }

          @Override
          public void waitUntil(long nanos) {
            reached[Integer.parseInt(Thread.currentThread().getName())] = nanos;
          }
        };
    LayerBarrier barrier = new LayerBarrier(clock, 2, 1);
    barrier.begin(10);
    CompletableFuture<int[][]> other = new CompletableFuture<>();
    Thread.ofPlatform()
        .name("1")
        .start(
            () -> {
              try {
                barrier.compute(1, 70);
                other.complete(barrier.exchange(1, new int[] {7}));
              } catch (InterruptedException | RuntimeException e) {
                other.completeExceptionally(e);
              }
            });
    Thread.currentThread().setName("0");
    barrier.compute(0, 5);
    int[][] seen = barrier.exchange(0, new int[] {3});
    assertThat(seen).isDeepEqualTo(new int[][] {{3}, {7}});
    assertThat(other.get()).isDeepEqualTo(seen);
    assertThat(reached).containsExactly(80, 80);
  }

  @Test
  void stepThatIsGivenUpLetsEveryRankGo() {
    LayerBarrier barrier = new LayerBarrier(new EngineClock.Virtual(), 2, 1);
    CompletableFuture<Void> waits =
        CompletableFuture.runAsync(
            () -> {
              try {
                barrier.compute(0, 0);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    barrier.giveUp();
    assertThatThrownBy(waits::get)
        .isInstanceOf(ExecutionException.class)
        .hasMessageContaining("another rank failed");
  }
}
