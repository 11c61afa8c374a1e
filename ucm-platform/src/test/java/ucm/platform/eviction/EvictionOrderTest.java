package ucm.platform.eviction;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(60)
final class EvictionOrderTest {

  private static final int SIZE = 20;

  static Stream<EvictionOrder> orders() {
    return Stream.of(new LruOrder(2), new S3FifoOrder(SIZE));
  }

  @Test
  void lruEvictsInTheOrderOfTheLastUse() {
    Cache cache = new Cache(new LruOrder(2), 4);
    cache.ask(1, 2, 3, 4, 1, 3, 5, 6);
    assertThat(cache.entries).containsOnlyKeys(1L, 3L, 5L, 6L);
  }

  @Test
  void lruMeetsItsModel() {
    Cache cache = new Cache(new LruOrder(2), SIZE);
    LinkedHashSet<Long> model = new LinkedHashSet<>();
    Random random = new Random(1);
    for (int i = 0; i < 5000; i++) {
      long block = (long) Math.abs(random.nextGaussian() * SIZE);
      cache.ask(block);
      model.remove(block);
      model.add(block);
      if (model.size() > SIZE) {
        model.removeFirst();
      }
      assertThat(cache.entries.keySet()).isEqualTo(model);
    }
  }

  @Test
  void s3FifoLetsAScanPassThroughItsSmallQueue() {
    Cache cache = new Cache(new S3FifoOrder(SIZE), SIZE);
    for (long block = 1; block <= 10; block++) {
      cache.ask(block, block, block);
    }
    for (long block = 100; block < 200; block++) {
      cache.ask(block);
    }
    assertThat(cache.entries).containsKeys(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
  }

  @Test
  void s3FifoPutsWhatComesBackIntoItsMainQueue() {
    Cache cache = new Cache(new S3FifoOrder(SIZE), SIZE);
    for (long block = 1; block <= SIZE + 1; block++) {
      cache.ask(block);
    }
    assertThat(cache.entries).doesNotContainKey(1L);
    cache.ask(1);
    for (long block = 100; block < 110; block++) {
      cache.ask(block);
    }
    assertThat(cache.entries).containsKey(1L);
  }

  @Test
  void s3FifoKnowsAnEvictedBlockByItsKeyOnly() {
    EvictionOrder order = new S3FifoOrder(2);
    order.add(0, 70);
    assertThat(order.evict(any -> true)).isZero();
    // 70 comes back under another number, into the main queue, and 5 under its old one.
    order.add(1, 70);
    order.add(0, 5);
    assertThat(order.evict(any -> true)).isZero();
  }

  @ParameterizedTest
  @MethodSource("orders")
  void neverNamesAnEntryInUseAndNamesEveryOther(EvictionOrder order) {
    Set<Integer> idle = new HashSet<>();
    Set<Integer> busy = new HashSet<>();
    Random random = new Random(7);
    for (int i = 0; i < 50_000; i++) {
      int entry = random.nextInt(SIZE);
      boolean here = idle.contains(entry) || busy.contains(entry);
      switch (random.nextInt(here ? 5 : 2)) {
        case 0 -> {
          int victim = order.evict(idle::contains);
          assertThat(victim == EvictionOrder.NONE ? idle.isEmpty() : idle.remove(victim)).isTrue();
        }
        case 1 -> {
          if (!here) {
            order.add(entry, random.nextInt(64));
            (random.nextBoolean() ? idle : busy).add(entry);
          }
        }
        case 2 -> {
          (idle.remove(entry) ? busy : idle).add(entry);
          busy.removeAll(idle);
        }
        case 3 -> order.touch(entry);
        default -> {
          order.remove(entry);
          order.remove(entry);
          idle.remove(entry);
          busy.remove(entry);
        }
      }
    }
    while (!idle.isEmpty()) {
      assertThat(idle.remove(order.evict(idle::contains))).isTrue();
    }
    assertThat(order.evict(idle::contains)).isEqualTo(EvictionOrder.NONE);
  }

  @Test
  void ghostsAreRememberedUpToTheirBound() {
    int bound = 50;
    S3FifoOrder.GhostQueue ghosts = new S3FifoOrder.GhostQueue(bound);
    LinkedHashSet<Long> model = new LinkedHashSet<>();
    Random random = new Random(3);
    for (int i = 0; i < 20_000; i++) {
      long key = random.nextInt(120);
      assertThat(ghosts.remove(key)).isEqualTo(model.remove(key));
      if (random.nextBoolean()) {
        ghosts.add(key);
        model.add(key);
        if (model.size() > bound) {
          model.removeFirst();
        }
      }
    }
  }

  /** Gives each block inside an entry, which goes to others when the block has left. */
  private static final class Cache {

    private final EvictionOrder order;
    private final Map<Long, Integer> entries = new HashMap<>();
    private final Deque<Integer> free = new ArrayDeque<>();

    Cache(EvictionOrder order, int size) {
      this.order = order;
      for (int entry = 0; entry < size; entry++) {
        free.add(entry);
      }
    }

    void ask(long... blocks) {
      for (long block : blocks) {
        Integer known = entries.get(block);
        if (known != null) {
          order.touch(known);
          continue;
        }
        if (free.isEmpty()) {
          int victim = order.evict(any -> true);
          entries.values().remove(victim);
          free.add(victim);
        }
        int entry = free.remove();
        order.add(entry, block);
        entries.put(block, entry);
      }
    }
  }
}
