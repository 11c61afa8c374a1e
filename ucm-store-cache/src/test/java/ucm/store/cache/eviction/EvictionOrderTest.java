package ucm.store.cache.eviction;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.SequencedSet;
import java.util.Set;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.store.cache.pool.StripeSlots;

@Timeout(180)
final class EvictionOrderTest {

  private static final int BLOCKS = 16;

  @Test
  void lruEvictsInTheOrderOfTheLastUse() {
    Blocks blocks = new Blocks(CachePolicy.LRU, 4);
    blocks.ask(1, 2, 3, 4, 1, 3);
    blocks.ask(5, 6);
    assertThat(blocks.present).containsExactlyInAnyOrder(1L, 3L, 5L, 6L);
  }

  @Test
  void lruMeetsItsModel() {
    Blocks blocks = new Blocks(CachePolicy.LRU, BLOCKS);
    SequencedSet<Long> model = new LinkedHashSet<>();
    Random random = new Random(1);
    for (int i = 0; i < 5000; i++) {
      long block = (long) Math.abs(random.nextGaussian() * BLOCKS);
      blocks.ask(block);
      model.remove(block);
      model.add(block);
      if (model.size() > BLOCKS) {
        model.removeFirst();
      }
      assertThat(blocks.present).isEqualTo(model);
    }
  }

  @Test
  void agedLruKeepsWhatWasUsedAgainTwiceAsLong() {
    Blocks blocks = new Blocks(CachePolicy.AGED_LRU, 8);
    blocks.ask(1, 2, 1, 2);
    blocks.ask(11, 12, 13, 14, 15, 16);
    // Ages now 8 and 7, halved, against 6 of the oldest one that was used once.
    blocks.ask(21, 22, 23);
    assertThat(blocks.present).contains(1L, 2L).doesNotContain(11L, 12L, 13L);
    blocks.ask(31, 32, 33, 34, 35, 36, 37);
    assertThat(blocks.present).doesNotContain(1L, 2L);
  }

  @Test
  void agedLruRemembersWhatItEvicted() {
    Blocks blocks = new Blocks(CachePolicy.AGED_LRU, 4);
    blocks.ask(1, 2, 3, 4, 5);
    assertThat(blocks.present).doesNotContain(1L);
    blocks.ask(1);
    blocks.ask(6, 7, 8);
    assertThat(blocks.present).contains(1L);
  }

  @Test
  void s3FifoLetsAScanPassThroughItsSmallQueue() {
    Blocks blocks = new Blocks(CachePolicy.S3FIFO, 20);
    for (long block = 1; block <= 10; block++) {
      blocks.ask(block, block, block);
    }
    for (long block = 100; block < 200; block++) {
      blocks.ask(block);
    }
    assertThat(blocks.present).contains(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L);
  }

  @Test
  void s3FifoPutsWhatComesBackIntoItsMainQueue() {
    Blocks blocks = new Blocks(CachePolicy.S3FIFO, 20);
    for (long block = 1; block <= 21; block++) {
      blocks.ask(block);
    }
    assertThat(blocks.present).doesNotContain(1L);
    blocks.ask(1);
    for (long block = 100; block < 110; block++) {
      blocks.ask(block);
    }
    assertThat(blocks.present).contains(1L);
  }

  @ParameterizedTest
  @EnumSource
  void neverNamesABlockInUseAndNamesEveryOther(CachePolicy policy) {
    EvictionOrder order = policy.order(2, BLOCKS);
    order.grow(BLOCKS);
    Set<Integer> idle = new HashSet<>();
    Set<Integer> busy = new HashSet<>();
    List<Integer> unused = new ArrayList<>();
    for (int entry = 0; entry < BLOCKS; entry++) {
      unused.add(entry);
    }
    Random random = new Random(7);
    for (int i = 0; i < 20_000; i++) {
      switch (random.nextInt(5)) {
        case 0 -> {
          if (!unused.isEmpty()) {
            int entry = unused.removeLast();
            order.enter(entry, random.nextInt(64), 0);
            busy.add(entry);
          }
        }
        case 1 -> move(busy, idle, order::idle);
        case 2 -> move(idle, busy, order::busy);
        case 3 -> {
          Set<Integer> any = random.nextBoolean() ? idle : busy;
          any.stream().findAny().ifPresent(order::use);
        }
        default -> {
          int victim = order.victim();
          if (idle.isEmpty()) {
            assertThat(victim).isEqualTo(BlockTable.NONE);
          } else {
            assertThat(idle).contains(victim);
            order.evicted(victim, random.nextInt(64) + 64L * i, 0);
            order.leave(victim);
            idle.remove(victim);
            unused.add(victim);
          }
        }
      }
    }
    while (!idle.isEmpty()) {
      int victim = order.victim();
      assertThat(idle.remove(victim)).isTrue();
      order.leave(victim);
    }
    assertThat(order.victim()).isEqualTo(BlockTable.NONE);
  }

  @Test
  void evictedIdsAreRememberedUpToTheirBound() {
    int bound = 50;
    EvictedIds ids = new EvictedIds(bound);
    List<Long> places = new ArrayList<>();
    Random random = new Random(3);
    for (int i = 0; i < 20_000; i++) {
      long id = random.nextInt(120);
      boolean remembered = places.contains(id);
      assertThat(ids.remove(id, -id)).isEqualTo(remembered);
      if (remembered) {
        // Its place is left empty until the ring comes round.
        places.set(places.indexOf(id), -1L);
      }
      if (random.nextBoolean()) {
        ids.add(id, -id);
        places.add(id);
        if (places.size() > bound) {
          places.removeFirst();
        }
      }
    }
  }

  private static void move(Set<Integer> from, Set<Integer> to, IntConsumer told) {
    from.stream()
        .findAny()
        .ifPresent(
            entry -> {
              from.remove(entry);
              to.add(entry);
              told.accept(entry);
            });
  }

  /** Blocks of one shard in the slots of a stripe. */
  private static final class Blocks {

    private final StripeSlots slots;
    private final Set<Long> present = new HashSet<>();

    Blocks(CachePolicy policy, int count) {
      slots = new StripeSlots(count, 1, policy);
    }

    /** Loads blocks, or dumps those that are not there. */
    void ask(long... blocks) {
      for (long block : blocks) {
        long hash = BlockTable.hash(block, ~block);
        int slot = slots.find(hash, block, ~block, 0);
        if (slot == BlockTable.NONE) {
          slot = slots.take(hash, block, ~block, 0, StripeSlots.DUMPING);
          slots.ready(slot);
          present.add(block);
        } else {
          slots.reference(slot);
          slots.use(slot);
        }
        slots.release(slot);
        present.removeIf(known -> slots.find(BlockTable.hash(known, ~known), known, ~known, 0) < 0);
      }
    }
  }
}
