package ucm.store.cache.shared;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;

/**
 * Measures hot loads and look-ups of a shared buffer beside those of a private one, alternating in one
 * run, and prints medians and ratios. Run by hand: {@code SharedSpeed [repetitions]}.
 */
public final class SharedSpeed {

  private static final long MOVED_BYTES = 256L << 20;
  private static final int WARM_UPS = 20;
  private static final int BLOCKS_A_TASK = 16;
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  private final BlockLayout layout;
  private final BlockIds ids;
  private final Transfer[] transfers;

  private SharedSpeed(Arena arena, BlockLayout layout) {
    this.layout = layout;
    int blocks = (int) (MOVED_BYTES / layout.blockSize());
    this.ids = BlockBytes.ids(1, blocks);
    MemoryRegion engine =
        MemoryRegion.host(arena.allocate(blocks * layout.blockSize(), 4096).fill((byte) 1));
    this.transfers = new Transfer[Math.ceilDiv(blocks, BLOCKS_A_TASK)];
    Transfer.Builder builder = Transfer.packed(layout);
    for (int task = 0; task < transfers.length; task++) {
      int end = Math.min(blocks, (task + 1) * BLOCKS_A_TASK);
      for (int block = task * BLOCKS_A_TASK; block < end; block++) {
        for (int shard = 0; shard < layout.shardCount(); shard++) {
          builder
              .shard(ids, block, shard)
              .piece(engine, block * layout.blockSize() + shard * layout.shardSize());
        }
      }
      transfers[task] = builder.build();
    }
  }

  /** Prints the figures. */
  public static void main(String[] arguments) throws InterruptedException {
    int repetitions = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 15;
    try (Arena arena = Arena.ofShared()) {
      for (long shard : new long[] {2 << 20, 64 << 10, 32 << 10}) {
        new SharedSpeed(arena, BlockLayout.uniform(shard, shard, 2 << 20)).measure(repetitions);
      }
    }
  }

  private void measure(int repetitions) throws InterruptedException {
    int slots = (ids.size() + 1) * layout.shardCount();
    Map<String, Object> shared = Segments.settings("speed", layout, slots / layout.shardCount());
    try (TestCache ours = new TestCache(layout, null, 0, shared);
        TestCache own = new TestCache(layout, null, slots, Map.of())) {
      double _ = move(ours.store, false);
      double _ = move(own.store, false);
      for (int i = 0; i < WARM_UPS; i++) {
        double _ = move(ours.store, true);
        double _ = move(own.store, true);
        double _ = lookUp(ours.store);
        double _ = lookUp(own.store);
      }
      double[] here = new double[repetitions];
      double[] there = new double[repetitions];
      double[] found = new double[repetitions];
      double[] foundOwn = new double[repetitions];
      Duration cpuHere = Duration.ZERO;
      Duration cpuThere = Duration.ZERO;
      for (int i = 0; i < repetitions; i++) {
        Duration start = cpuTime();
        here[i] = move(ours.store, true);
        Duration middle = cpuTime();
        there[i] = move(own.store, true);
        cpuHere = cpuHere.plus(middle.minus(start));
        cpuThere = cpuThere.plus(cpuTime().minus(middle));
        found[i] = lookUp(ours.store);
        foundOwn[i] = lookUp(own.store);
      }
      print("hot load, GB/s", here, there);
      System.out.printf(
          Locale.ROOT,
          "shards of %d KiB, processor time of all hot loads: shared %d ms, private %d ms%n",
          layout.shardSize() >> 10,
          cpuHere.toMillis(),
          cpuThere.toMillis());
      print("look-up, M blocks/s", found, foundOwn);
    }
  }

  private double move(Store store, boolean load) throws InterruptedException {
    Task[] tasks = new Task[transfers.length];
    long start = System.nanoTime();
    for (int i = 0; i < tasks.length; i++) {
      tasks[i] = load ? store.load(transfers[i]) : store.dump(transfers[i]);
    }
    for (Task task : tasks) {
      task.await(PATIENCE).requireOk();
    }
    return (double) MOVED_BYTES / (System.nanoTime() - start);
  }

  private static Duration cpuTime() {
    return ProcessHandle.current().info().totalCpuDuration().orElseThrow();
  }

  private double lookUp(Store store) {
    int calls = 100;
    long start = System.nanoTime();
    for (int call = 0; call < calls; call++) {
      if (store.lookupPrefix(ids) != ids.size() - 1) {
        throw new AssertionError("blocks are gone");
      }
    }
    return calls * (double) ids.size() * 1e3 / (System.nanoTime() - start);
  }

  private void print(String what, double[] shared, double[] own) {
    double[] ratios = new double[shared.length];
    Arrays.setAll(ratios, i -> shared[i] / own[i]);
    Arrays.sort(shared);
    Arrays.sort(own);
    Arrays.sort(ratios);
    int middle = ratios.length / 2;
    System.out.printf(
        Locale.ROOT,
        "shards of %d KiB, %s: shared %.2f, private %.2f, ratio %.2f (%.2f - %.2f)%n",
        layout.shardSize() >> 10,
        what,
        shared[middle],
        own[middle],
        ratios[middle],
        ratios[0],
        ratios[ratios.length - 1]);
  }
}
