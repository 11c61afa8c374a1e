package ucm.store.file;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.fixture.LocalFileStore;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;

/**
 * Compares the store with bare system calls on files of the same sizes and places, in one run: {@code
 * StoreSpeed DIRECTORY [BLOCK_KIB MIB_PER_RUN RUNS]}. Prints medians, and the ratio of each pair of
 * runs (median, lowest, highest), and that of the best runs of either side, which means more on a
 * machine that others use too. Page cache warm, two threads on either side; or past the page cache on
 * either side with {@code -Ddirect=true}, and {@code -Dengine=aio}.
 */
final class StoreSpeed {

  private static final int THREADS = 2;
  private static final int FOLDERS = 4096;
  private static final boolean DIRECT = Boolean.getBoolean("direct");

  private final LibcFileOperations files = new LibcFileOperations();
  private final Path directory;
  private final BlockLayout layout;
  private final int blocks;
  private final MemoryRegion memory;

  private StoreSpeed(Path directory, long blockSize, int blocks) {
    this.directory = directory;
    this.layout = BlockLayout.uniform(blockSize, blockSize, blockSize);
    this.blocks = blocks;
    MemorySegment segment = Arena.global().allocate(blocks * blockSize, 4096);
    for (long i = 0; i < segment.byteSize(); i += Long.BYTES) {
      segment.set(ValueLayout.JAVA_LONG, i, i * 0x9e3779b97f4a7c15L);
    }
    this.memory = MemoryRegion.host(segment);
  }

  public static void main(String[] args) throws Exception {
    Path directory = Path.of(args[0]);
    List<Integer> sizes = args.length > 1 ? List.of(Integer.parseInt(args[1])) : List.of(1024, 64);
    int mib = args.length > 2 ? Integer.parseInt(args[2]) : 128;
    int runs = args.length > 3 ? Integer.parseInt(args[3]) : 9;
    for (int kib : sizes) {
      Path own = Files.createTempDirectory(directory, "speed-");
      try {
        new StoreSpeed(own, kib * 1024L, mib * 1024 / kib).measure(runs);
      } finally {
        delete(own);
      }
    }
  }

  private void measure(int runs) throws Exception {
    String raw = directory.resolve("raw").toString();
    String own = directory.resolve("own").toString();
    for (String backend : List.of(raw, own)) {
      for (int i = 0; i < FOLDERS; i++) {
        Files.createDirectories(Path.of(backend, String.format("%03x", i)));
      }
    }
    Store store = open(own);
    double[][] gbs = new double[6][runs];
    for (int run = -3; run < runs; run++) {
      BlockIds ids = BlockBytes.ids(1000 + run, blocks);
      NativePath[] paths = paths(raw, ids);
      Transfer transfer = transfer(ids);
      double[] now = {
        afterMakingRoom(() -> rawAll(paths, true)),
        afterMakingRoom(() -> finish(store.dump(transfer))),
        timed(() -> rawAll(paths, false)),
        timed(() -> finish(store.load(transfer))),
        timed(() -> rawAll(paths, false)),
        timed(() -> finish(store.load(transfer)))
      };
      for (int i = 0; i < now.length && run >= 0; i++) {
        gbs[i][run] = now[i];
      }
    }
    BlockIds ids = BlockBytes.ids(1000, blocks);
    System.out.printf("blocks of %d KiB, %d a run%n", layout.blockSize() / 1024, blocks);
    print("dump", gbs[0], gbs[1]);
    print("load", gbs[2], gbs[3]);
    print("load again", gbs[4], gbs[5]);
    lookups(store, ids, "present");
    lookups(store, BlockBytes.ids(5, blocks), "absent");
    allocation(store, transfer(ids));
    store.close();
  }

  private void lookups(Store store, BlockIds ids, String what) {
    double best = 0;
    for (int i = 0; i < 20; i++) {
      long start = System.nanoTime();
      store.lookup(ids);
      best = Math.max(best, ids.size() * 1e3 / (System.nanoTime() - start));
    }
    System.out.printf("  look-up, %s: %.2f M blocks/s%n", what, best);
  }

  /** Right only while no garbage is collected: run with -XX:+UseEpsilonGC. */
  private void allocation(Store store, Transfer transfer) throws Exception {
    finish(store.load(transfer));
    long before = usedHeap();
    int rounds = 50;
    for (int i = 0; i < rounds; i++) {
      finish(store.load(transfer));
    }
    long bytes = usedHeap() - before;
    System.out.printf("  load: %.1f B of heap per block%n", (double) bytes / rounds / blocks);
  }

  private static long usedHeap() {
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private static void print(String what, double[] raw, double[] own) {
    double[] ratios = new double[raw.length];
    for (int i = 0; i < ratios.length; i++) {
      ratios[i] = own[i] / raw[i];
    }
    System.out.printf(
        "  %-10s raw %.2f GB/s, store %.2f GB/s, ratio %.2f (%.2f to %.2f), of the best %.2f%n",
        what,
        median(raw),
        median(own),
        median(ratios),
        Arrays.stream(ratios).min().orElseThrow(),
        Arrays.stream(ratios).max().orElseThrow(),
        Arrays.stream(own).max().orElseThrow() / Arrays.stream(raw).max().orElseThrow());
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private interface Work {
    void run() throws Exception;
  }

  /**
   * A virtual machine gives free memory back to its host, and gets it again page by page: without
   * pages that were in use a moment ago, the host is what is measured.
   */
  private double afterMakingRoom(Work work) throws Exception {
    Path room = directory.resolve("room");
    NativePath path = NativePath.of(room.toString());
    int fd = files.create(path);
    for (int i = 0; i < blocks + blocks / 4; i++) {
      IoVector vector = new IoVector().add(memory, 0, layout.blockSize());
      files.writeAt(fd, path, vector, i * layout.blockSize());
    }
    files.close(fd, path);
    Files.delete(room);
    return timed(work);
  }

  private double timed(Work work) throws Exception {
    long start = System.nanoTime();
    work.run();
    return blocks * (double) layout.blockSize() / (System.nanoTime() - start);
  }

  private static void finish(Task task) throws InterruptedException {
    task.await(Duration.ofMinutes(1)).requireOk();
  }

  private Store open(String backend) {
    LocalFileStore store = new LocalFileStore();
    store.configure(
        StoreConfig.of(
            Map.of(
                "storage_backends", backend,
                "block_size", layout.blockSize(),
                "device_id", 0,
                "posix_data_trans_concurrency", Integer.getInteger("threads", THREADS),
                "io_direct", DIRECT,
                "posix_io_engine", System.getProperty("engine", "psync"),
                "verify", System.getProperty("verify", "full"))));
    store.open(StoreContext.of(null));
    return store;
  }

  private Transfer transfer(BlockIds ids) {
    Transfer.Builder builder = Transfer.packed(layout);
    for (int i = 0; i < blocks; i++) {
      builder.shard(ids, i, 0).piece(memory, i * layout.blockSize());
    }
    return builder.build();
  }

  private NativePath[] paths(String backend, BlockIds ids) {
    BlockPaths paths = new BlockPaths("Posix", List.of(backend), 3);
    NativePath[] all = new NativePath[blocks];
    for (int i = 0; i < blocks; i++) {
      all[i] = paths.block(new NativePath(), ids.high(i), ids.low(i));
    }
    return all;
  }

  private void rawAll(NativePath[] paths, boolean write) throws InterruptedException {
    AtomicInteger next = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < THREADS; t++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    IoVector vector = new IoVector();
                    for (int i = next.getAndIncrement(); i < blocks; i = next.getAndIncrement()) {
                      raw(paths[i], vector, i * layout.blockSize(), write);
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private void raw(NativePath path, IoVector vector, long offset, boolean write) {
    vector.clear().add(memory, offset, layout.blockSize());
    int fd = write ? files.create(path) : files.openRead(path);
    if (DIRECT) {
      files.setDirect(fd, path);
    }
    long moved = write ? files.writeAt(fd, path, vector, 0) : files.readAt(fd, path, vector, 0);
    if (moved != layout.blockSize()) {
      throw new IllegalStateException("short: " + moved);
    }
    files.close(fd, path);
  }

  private static void delete(Path root) throws IOException {
    try (Stream<Path> all = Files.walk(root)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }
}
