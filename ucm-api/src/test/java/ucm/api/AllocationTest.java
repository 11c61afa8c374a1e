package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.BitSet;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;

/** What a stage allocates to hand on a part of a transfer, and to see it off. */
final class AllocationTest {

  private static final int SHARDS = 64_000;
  private static final ShardListener NONE = ShardListener.NONE;
  private static final BlockLayout LAYOUT = BlockLayout.uniform(1, 1, 2);
  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 0, SHARDS);

  @Test
  void isTwoBitsForAShardOfARange() {
    long allocated =
        allocated((of, places) -> Transfer.packedRange(of, 0, SHARDS, places, NONE), 1);
    assertThat(allocated).as("bytes for 64,000 shards").isBetween(16_000L, 17_000L);
  }

  @Test
  void isABitAndAHalfMoreForAShardFromTheFirstToTheLastOfASelection() {
    BitSet some = new BitSet(SHARDS);
    for (int i = 0; i < SHARDS; i += 2) {
      some.set(i);
    }
    long allocated =
        allocated((of, places) -> Transfer.packedSelection(of, 0, some, places, NONE), 2);
    assertThat(allocated).as("bytes for 32,000 of 64,000 shards").isBetween(20_000L, 21_000L);
  }

  /** Bytes of the heap it takes to hand on a part that has a shard each few of the whole. */
  private static long allocated(BiFunction<Transfer, Places, Transfer> part, int each) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Transfer engine = engine();
    Places places = new Places(LAYOUT);
    long allocated = 0;
    boolean well = true;
    // The first rounds are interpreted, and the places grow; the last one is what counts.
    for (int round = 0; round < 5; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      well &= handOn(engine, places, part, each).ok();
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertThat(well).isTrue();
    return allocated;
  }

  private static TransferResult handOn(
      Transfer engine, Places places, BiFunction<Transfer, Places, Transfer> part, int each) {
    places.clear();
    for (int i = 0; i < SHARDS; i += each) {
      places.add(MEMORY, SHARDS - 1 - i);
    }
    TransferTask task = new TransferTask(1, part.apply(engine, places));
    for (int i = 0; i < SHARDS / each; i++) {
      if (task.begin(i)) {
        task.ok(i);
      }
    }
    return task.result();
  }

  private static Transfer engine() {
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    for (int i = 0; i < SHARDS; i++) {
      builder.shard(i / 2, 0, i % 2).piece(MEMORY, i);
    }
    return builder.build();
  }
}
