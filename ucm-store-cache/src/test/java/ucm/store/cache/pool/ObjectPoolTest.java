package ucm.store.cache.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Places;

final class ObjectPoolTest {

  private static final int ROUNDS = 5000;

  @Test
  void whatIsGivenBackIsTakenAgainWithoutWhatWasInIt() {
    ObjectPool<int[]> pool = ObjectPool.ofNumbers();
    int[] first = pool.take(20);
    assertThat(first.length).isGreaterThanOrEqualTo(20);
    Arrays.fill(first, 7);
    pool.giveBack(first, 20);
    assertThat(first).containsOnly(ObjectPool.WIPED);
    assertThat(pool.take(33)).isNotSameAs(first);
    assertThat(pool.take(32)).isSameAs(first);
    assertThat(pool.take(32)).isNotSameAs(first);
  }

  @Test
  void keepsNoMoreThanItsBound() {
    ObjectPool<int[]> pool = ObjectPool.ofNumbers();
    giveBack(pool, 100, 0);
    assertThat(pool.count()).isEqualTo(64);
    giveBack(pool, 100, 1 << 16);
    assertThat(pool.count()).isEqualTo(66);
    giveBack(pool, 100, (1 << 16) + 1);
    assertThat(pool.count()).isEqualTo(66);
  }

  @Test
  void givingBackTwiceIsAnError() {
    ObjectPool<int[]> pool = ObjectPool.ofNumbers();
    int[] array = pool.take(5);
    pool.giveBack(array, 5);
    assertThatThrownBy(() -> pool.giveBack(array, 5))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("twice");
  }

  @Test
  void placesAreEmptyWhenTheyAreTaken() {
    BlockLayout layout = BlockLayout.uniform(64, 128, 256);
    ObjectPool<Places> pool = ObjectPool.ofPlaces(layout);
    Places places = pool.take(1);
    try (Arena arena = Arena.ofShared()) {
      places.add(MemoryRegion.host(arena.allocate(128)), 0);
    }
    pool.giveBack(places, 1);
    assertThat(pool.take(1)).isSameAs(places);
    assertThat(places.size()).isZero();
  }

  @Test
  @Timeout(60)
  void handsNothingOutTwice() throws Exception {
    ObjectPool<int[]> pool = ObjectPool.ofNumbers();
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        int own = i;
        all.add(threads.submit(() -> useAlone(pool, own)));
      }
      for (Future<?> one : all) {
        one.get();
      }
    }
    assertThat(pool.count()).isBetween(1, 4 * 3);
  }

  private static void useAlone(ObjectPool<int[]> pool, int own) {
    Random random = new Random(own);
    for (int round = 0; round < ROUNDS; round++) {
      int length = random.nextInt(60);
      int[] array = pool.take(length);
      Arrays.fill(array, own);
      Thread.onSpinWait();
      assertThat(Arrays.stream(array).allMatch(number -> number == own)).isTrue();
      pool.giveBack(array, length);
    }
  }

  private static void giveBack(ObjectPool<int[]> pool, int count, int length) {
    List<int[]> taken = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      taken.add(pool.take(length));
    }
    taken.forEach(array -> pool.giveBack(array, length));
  }
}
