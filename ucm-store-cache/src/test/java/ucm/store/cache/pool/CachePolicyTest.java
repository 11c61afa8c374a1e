package ucm.store.cache.pool;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Random;
import java.util.SequencedSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.pool.SlotPool.Reservation;

/** What a pool keeps by each policy. */
@Timeout(180)
final class CachePolicyTest {

  private static final int BLOCKS = 16;

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

  /** Blocks of one shard in a pool. */
  private static final class Blocks {

    private final SlotPool pool;
    private final Set<Long> present = new HashSet<>();

    Blocks(CachePolicy policy, int count) {
      pool = new SlotPool(count, 1, policy, _ -> {});
    }

    /** Loads blocks, or dumps those that are not there. */
    void ask(long... blocks) {
      for (long block : blocks) {
        long reservation = pool.reserveForLoad(block, ~block, 0, null, 0, true);
        int slot = Reservation.number(reservation);
        if (Reservation.kind(reservation) == Reservation.HIT) {
          pool.release(slot);
        } else {
          pool.filled(slot, true);
          present.add(block);
        }
        present.removeIf(known -> !pool.isComplete(BlockIds.of(known, ~known), 0));
      }
    }
  }
}
