package ucm.store.cache;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntFunction;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Transfer;
import ucm.api.config.StoreConfig;
import ucm.store.cache.fixture.CountingNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;

/**
 * Measures loads and dumps beside a plain copy of the same pieces by two threads, alternating in one
 * run, and prints medians and ratios. Run by hand: {@code CacheSpeed [repetitions]}.
 */
public final class CacheSpeed {

  private static final long MOVED_BYTES = 256L << 20;
  private static final int THREADS = 2;
  private static final int WARM_UPS = 5;
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  private interface Run {
    void run() throws InterruptedException;
  }

  private final BlockLayout layout;
  private final int repetitions;
  private final int blocks;
  private final MemoryRegion engine;
  private final MemorySegment other;

  private CacheSpeed(Arena arena, BlockLayout layout, int repetitions) {
    this.layout = layout;
    this.repetitions = repetitions;
    this.blocks = (int) (MOVED_BYTES / layout.blockSize());
    long bytes = blocks * layout.blockSize();
    this.engine = MemoryRegion.host(arena.allocate(bytes, 4096).fill((byte) 1));
    this.other = arena.allocate(bytes, 4096).fill((byte) 2);
  }

  /** Prints the figures. */
  public static void main(String[] arguments) throws InterruptedException {
    int repetitions = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 9;
    measureLookups(repetitions);
    try (Arena arena = Arena.ofShared()) {
      measure(
          arena,
          "64 x 32 KiB, a block a shard",
          BlockLayout.uniform(32 << 10, 2 << 20, 2 << 20),
          repetitions);
      measure(
          arena,
          "64 shards x 32 KiB",
          BlockLayout.uniform(32 << 10, 32 << 10, 2 << 20),
          repetitions);
      measure(
          arena,
          "24 shards x 64 KiB, 2 tensors",
          BlockLayout.uniform(32 << 10, 64 << 10, 24 * (64 << 10)),
          repetitions);
    }
  }

  private static void measureLookups(int repetitions) throws InterruptedException {
    BlockLayout small = BlockLayout.uniform(4096, 4096, 4096);
    int known = 1 << 16;
    try (Arena arena = Arena.ofShared();
        TestCache cache = new TestCache(small, null, 2 * known, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, known);
      MemoryRegion page = MemoryRegion.host(arena.allocate(4096));
      Transfer.Builder builder = Transfer.packed(small);
      for (int i = 0; i < known; i++) {
        builder.shard(ids, i, 0).piece(page, 0);
      }
      cache.store.dump(builder.build()).await(PATIENCE).requireOk();
      for (int i = 0; i < repetitions; i++) {
        long start = System.nanoTime();
        int found = cache.store.lookup(ids).cardinality();
        long full = System.nanoTime();
        int last = cache.store.lookupPrefix(ids);
        long prefix = System.nanoTime();
        System.out.printf(
            Locale.ROOT,
            "look-ups of %d blocks, all known (%d, %d): full %.1f M/s, prefix %.1f M/s%n",
            known,
            found,
            last,
            known * 1e3 / (full - start),
            known * 1e3 / (prefix - full));
      }
    }
  }

  private static void measure(Arena arena, String name, BlockLayout layout, int repetitions)
      throws InterruptedException {
    new CacheSpeed(arena, layout, repetitions).measure(name);
  }

  private void measure(String name) throws InterruptedException {
    System.out.printf(Locale.ROOT, "%n%s: %s, %d blocks a round%n", name, layout, blocks);
    CountingNext backend = new CountingNext();
    backend.configure(StoreConfig.of(TestCache.keys(layout)));
    backend.open(StoreContext.of(null));
    try (TestCache alone = cache(null);
        TestCache staged = cache(backend)) {
      for (int perTask : new int[] {blocks, 8}) {
        System.out.printf(Locale.ROOT, " %d blocks a task%n", perTask);
        BlockIds hot = BlockBytes.ids(0, blocks);
        move(alone.store, transfers(hot, perTask), false);
        compare("hot load", alone.store, true, i -> hot, perTask);
        int seed = perTask * 1000;
        compare("dump, alone", alone.store, false, i -> fresh(seed + i), perTask);
        compare("dump, writes behind", staged.store, false, i -> fresh(seed + 300 + i), perTask);
        compare("cold load", staged.store, true, i -> fresh(seed + 600 + i), perTask);
      }
    }
  }

  private BlockIds fresh(int seed) {
    return BlockBytes.ids(seed, blocks);
  }

  private TestCache cache(Store backend) {
    int slots = 2 * blocks * layout.shardCount();
    return new TestCache(layout, backend, slots, Map.of());
  }

  private void compare(
      String what, Store store, boolean load, IntFunction<BlockIds> ids, int perTask)
      throws InterruptedException {
    for (int i = 0; i < WARM_UPS; i++) {
      move(store, transfers(ids.apply(i), perTask), load);
      store.flush(PATIENCE);
      copyPieces();
    }
    double[] ours = new double[repetitions];
    double[] copies = new double[repetitions];
    double[] ratios = new double[repetitions];
    for (int i = 0; i < repetitions; i++) {
      List<Transfer> transfers = transfers(ids.apply(WARM_UPS + i), perTask);
      copies[i] = gbPerSecond(this::copyPieces);
      ours[i] = gbPerSecond(() -> move(store, transfers, load));
      store.flush(PATIENCE);
      ratios[i] = ours[i] / copies[i];
    }
    System.out.printf(
        Locale.ROOT,
        "  %-24s %5.1f GB/s, memcpy %5.1f GB/s, ratio %.2f (%.2f .. %.2f)%n",
        what,
        median(ours),
        median(copies),
        median(ratios),
        Arrays.stream(ratios).min().orElseThrow(),
        Arrays.stream(ratios).max().orElseThrow());
  }

  private double gbPerSecond(Run run) throws InterruptedException {
    long start = System.nanoTime();
    run.run();
    return blocks * layout.blockSize() / (double) (System.nanoTime() - start);
  }

  private List<Transfer> transfers(BlockIds ids, int perTask) {
    List<Transfer> transfers = new ArrayList<>();
    Transfer.Builder builder = Transfer.scattered(layout);
    long at = 0;
    for (int first = 0; first < blocks; first += perTask) {
      int end = Math.min(blocks, first + perTask);
      for (int block = first; block < end; block++) {
        for (int shard = 0; shard < layout.shardCount(); shard++) {
          builder.shard(ids, block, shard);
          for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
            builder.piece(engine, at);
            at += layout.tensorSize(tensor);
          }
        }
      }
      transfers.add(builder.build());
    }
    return transfers;
  }

  private static void move(Store store, List<Transfer> transfers, boolean load)
      throws InterruptedException {
    for (Transfer transfer : transfers) {
      (load ? store.load(transfer) : store.dump(transfer)).await(PATIENCE).requireOk();
    }
  }

  private void copyPieces() throws InterruptedException {
    CountDownLatch done = new CountDownLatch(THREADS);
    long half = engine.byteSize() / THREADS;
    long piece = layout.tensorSize(0);
    for (int thread = 0; thread < THREADS; thread++) {
      long from = thread * half;
      Thread.ofPlatform()
          .start(
              () -> {
                for (long at = from; at < from + half; at += piece) {
                  MemorySegment.copy(engine.segment(), at, other, at, piece);
                }
                done.countDown();
              });
    }
    done.await();
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
