package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.store.cache.eviction.BlockTable;

/** What is found of a stripe during a change, or after one that was stopped. */
final class SlabTableTest {

  private static final int OWN = 1;
  private static final int SLABS = 8;
  private static final SegmentLayout LAYOUT =
      SegmentLayout.of(BlockLayout.uniform(4096, 4096, 2 * 4096), SLABS);

  private final SegmentWords words =
      new SegmentWords(Arena.ofAuto().allocate(LAYOUT.slotsAt(), 4096));

  @Test
  void blockIsFoundWhileTheChainsAreRebuilt() {
    SlabManager.format(words, LAYOUT, 0);
    SlabManager manager = new SlabManager(words, LAYOUT, 0, OWN, _ -> {});
    SlabTable table = new SlabTable(words, LAYOUT, 0, OWN);
    int first = manager.take(hash(1), 1, 1, 0, SlotWord.LOADING, 0);
    int second = manager.take(hash(2), 2, 2, 0, SlotWord.LOADING, 0);
    // So far a holder has come that takes the lock over from a dead one.
    long version = LAYOUT.stripeAt(0) + SegmentLayout.STRIPE_VERSION;
    words.set(version, words.get(version) | 1);
    for (int bucket = 0; bucket < LAYOUT.buckets(); bucket++) {
      words.setPlainInt(table.bucketAt(bucket), SlabTable.END);
    }
    assertThat(table.find(hash(1), 1, 1)).isEqualTo(first);
    assertThat(table.find(hash(2), 2, 2)).isEqualTo(second);
    assertThat(table.find(hash(3), 3, 3)).isEqualTo(SlabTable.NONE);
    table.orphan(first);
    assertThat(table.find(hash(1), 1, 1)).isEqualTo(SlabTable.NONE);
  }

  private static long hash(long id) {
    return BlockTable.hash(id, id);
  }
}
