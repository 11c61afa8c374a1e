package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class WakefulnessTest {

  private final Wakefulness wakefulness = new Wakefulness();
  private final AtomicInteger looks = new AtomicInteger();

  @Test
  void staysAwakeWhileItHelps() {
    for (int i = 0; i < 10; i++) {
      assertThat(looksUntil(true)).as("wait %d", i).isPositive();
    }
  }

  @Test
  void sleepsMoreOftenTheMoreOftenItWasInVain() {
    for (int asleep : new int[] {1, 3, 7, 15, 31, 63, 127, 255, 255}) {
      assertThat(looksUntil(false)).isPositive();
      assertAsleep(asleep);
    }
  }

  @Test
  void staysAwakeAgainOnceItHasHelped() {
    looksUntil(false);
    assertAsleep(1);
    looksUntil(false);
    assertAsleep(3);
    for (int i = 0; i < 10; i++) {
      assertThat(looksUntil(true)).as("wait %d", i).isPositive();
    }
    looksUntil(false);
    assertAsleep(1);
  }

  private void assertAsleep(int times) {
    for (int i = 0; i < times; i++) {
      assertThat(looksUntil(true)).as("%d of %d sleep", i, times).isZero();
    }
  }

  private int looksUntil(boolean isSo) {
    looks.set(0);
    wakefulness.stay(
        () -> {
          looks.incrementAndGet();
          return isSo;
        });
    return looks.get();
  }
}
