package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Map;
import java.util.function.ToIntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.InOneDirectory;
import ucm.testkit.BlockBytes;

/** A look-up takes some hundred bytes of the heap, and no object for each id that it asks the disk for. */
@Timeout(120)
final class LookupAllocationTest extends InOneDirectory {

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int FEW = 64;
  private static final int MANY = 4096;
  private static final int ROUNDS = 25;
  // Sets of bits; an object takes 16 bytes.
  private static final int MOST_BYTES = 4;

  LookupAllocationTest() {
    super(BlockLayout.uniform(512, 512, 512));
  }

  @Test
  void nothingIsAllocatedForAnId() {
    LocalFileStore store = stores.open(Map.of());
    assertThat(bytesOfAnId(ids -> store.lookup(ids).cardinality())).isLessThan(MOST_BYTES);
  }

  /** The negative control. */
  @Test
  void anObjectForEachIdShows() {
    LocalFileStore store = stores.open(Map.of());
    Object[] kept = new Object[MANY];
    assertThat(
            bytesOfAnId(
                ids -> {
                  for (int i = 0; i < ids.size(); i++) {
                    kept[i] = new Object();
                  }
                  return store.lookup(ids).cardinality();
                }))
        .isGreaterThan(MOST_BYTES);
  }

  /** Of the median of some look-ups of unknown ids, by all threads of the process. */
  private static double bytesOfAnId(ToIntFunction<BlockIds> lookup) {
    bytes(lookup, FEW);
    long few = bytes(lookup, FEW);
    return (bytes(lookup, MANY) - few) / (double) (MANY - FEW);
  }

  private static long bytes(ToIntFunction<BlockIds> lookup, int count) {
    long[] allocated = new long[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
      BlockIds ids = BlockBytes.ids(1000 * count + round, count);
      long before = THREADS.getTotalThreadAllocatedBytes();
      assertThat(lookup.applyAsInt(ids)).isZero();
      allocated[round] = THREADS.getTotalThreadAllocatedBytes() - before;
    }
    Arrays.sort(allocated);
    return allocated[ROUNDS / 2];
  }
}
