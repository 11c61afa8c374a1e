package ucm.platform.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class ConcurrentBlockSetTest {

  @Test
  void aFullOneForgetsTheOldest() {
    ConcurrentBlockSet set = new ConcurrentBlockSet(3);
    for (long id = 1; id <= 3; id++) {
      assertThat(set.add(id, 0)).isTrue();
    }
    assertThat(set.add(2, 0)).as("known already").isFalse();
    assertThat(set.forgotten()).isZero();
    assertThat(set.add(4, 0)).isTrue();
    assertThat(set.forgotten()).isEqualTo(1);
    assertThat(set.contains(1, 0)).isFalse();
    assertThat(set.contains(4, 0)).isTrue();
    assertThat(set.remove(2, 0)).isTrue();
    assertThat(set.remove(2, 0)).isFalse();
    assertThat(set.size()).isEqualTo(2);
  }

  @Test
  void aLargeOneHoldsItsBoundToWithinASixtyFourth() {
    int bound = 100_000;
    ConcurrentBlockSet set = new ConcurrentBlockSet(bound);
    for (long id = 0; id < 2L * bound; id++) {
      set.add(id, id);
    }
    assertThat(set.size())
        .isBetween(bound - 100L, bound + 64L)
        .isEqualTo(2L * bound - set.forgotten());
  }

  @Test
  void knowsNothingWithoutRoom() {
    ConcurrentBlockSet set = new ConcurrentBlockSet(0);
    assertThat(set.add(1, 2)).isFalse();
    assertThat(set.contains(1, 2)).isFalse();
    assertThat(set.remove(1, 2)).isFalse();
    assertThat(set.size() + set.forgotten()).isZero();
  }

  @Test
  void countsRemovalsOfWhatIsNotHereToo() {
    ConcurrentBlockSet set = new ConcurrentBlockSet(3);
    long before = set.removals(1, 1);
    set.remove(1, 1);
    assertThat(set.removals(1, 1)).isNotEqualTo(before);
  }

  @Test
  void findsWhatStaysWhileOthersComeAndGo() throws Exception {
    ConcurrentBlockSet set = new ConcurrentBlockSet(1 << 20);
    for (long id = 0; id < 1000; id++) {
      set.add(id, 0);
    }
    AtomicBoolean ended = new AtomicBoolean();
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      List<Future<?>> readers = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        readers.add(
            threads.submit(
                () -> {
                  while (!ended.get()) {
                    for (long id = 0; id < 1000; id++) {
                      assertThat(set.contains(id, 0)).isTrue();
                      assertThat(set.contains(id, 1)).isFalse();
                    }
                  }
                }));
      }
      Future<?> writer =
          threads.submit(
              () -> {
                for (long id = 0; id < 300_000; id++) {
                  set.add(id, 2);
                  set.remove(id / 2, 2);
                }
              });
      try {
        writer.get();
      } finally {
        ended.set(true);
      }
      for (Future<?> reader : readers) {
        reader.get();
      }
    }
  }
}
