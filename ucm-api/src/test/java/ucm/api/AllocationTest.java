package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** What a stage allocates to hand on a range of a transfer, and to see it off. */
final class AllocationTest {

  private static final int SHARDS = 64_000;
  private static final BlockLayout LAYOUT = BlockLayout.uniform(1, 1, 2);
  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 0, SHARDS);

  @Test
  void isTwoBitsForAShard() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Transfer engine = engine();
    Places places = new Places(LAYOUT);
    long allocated = 0;
    boolean well = true;
    // The first rounds are interpreted, and the places grow; the last one is what counts.
    for (int round = 0; round < 5; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      well &= handOn(engine, places).ok();
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertThat(well).isTrue();
    assertThat(allocated).as("bytes for 64,000 shards").isBetween(16_000L, 17_000L);
  }

  private static TransferResult handOn(Transfer engine, Places places) {
    places.clear();
    for (int i = 0; i < SHARDS; i++) {
      places.add(MEMORY, SHARDS - 1 - i);
    }
    TransferTask task =
        new TransferTask(1, Transfer.packedRange(engine, 0, SHARDS, places, ShardListener.NONE));
    for (int i = 0; i < SHARDS; i++) {
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
