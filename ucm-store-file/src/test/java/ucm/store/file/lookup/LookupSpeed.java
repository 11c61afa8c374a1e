package ucm.store.file.lookup;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.DeferredCleanup;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.fixture.LocalFileStore;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.index.BlockIndex;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.space.SpaceLimit;
import ucm.testkit.BlockBytes;

/**
 * Measures look-ups of prompts of 1,024 blocks, beside a bare loop of access(2) in the same run on the
 * same folders: {@code LookupSpeed DIRECTORY [KNOWN_BLOCKS]}. Prints medians of 21 runs, and bytes of
 * heap a prompt. Rates of known ids are those of one thread in a second of processor time, which others
 * on the machine disturb least; where the caller waits for other threads, and for access(2) beside it,
 * they are those of a second of real time. Unknown ids are new in every run.
 */
final class LookupSpeed {

  private static final int RUNS = 21;
  private static final int PROMPT = 1024;
  private static final int PROMPTS = 64;
  private static final int FOLDERS = 4096;
  // CLOCK_THREAD_CPUTIME_ID of Linux.
  private static final int THREAD_TIME = 3;

  private final BlockPaths paths;
  private final BlockLookup lookup;
  private final BlockIds known;
  private final MethodHandle access;
  private final MethodHandle clock;
  private final MemorySegment time = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
  private int seed = 1000;

  private LookupSpeed(Path directory, int knownBlocks) throws Exception {
    for (int i = 0; i < FOLDERS; i++) {
      Files.createDirectories(directory.resolve(String.format("%03x", i)));
    }
    FileStoreConfig config =
        FileStoreConfig.from(
                LocalFileStore.KIND,
                StoreConfig.of(
                    Map.of("storage_backends", directory.toString(), "block_size", 4096)))
            .orElseThrow();
    paths = new BlockPaths("Posix", config.backends(), config.folderDigits());
    BlockIndex index = new BlockIndex(config.indexMaxBlocks());
    FileStoreMetrics metrics = FileStoreMetrics.of(StoreMetrics.NONE);
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, System::nanoTime, metrics.refusedBlocks());
    BlockFiles files =
        new BlockFiles(
            new LibcFileOperations(),
            paths,
            config,
            new WriterLease[0],
            space,
            index,
            new OpenBlocks(
                new LibcFileOperations(),
                paths,
                System::nanoTime,
                new DeferredCleanup(LocalFileStore.KIND),
                1));
    DirectoryHealth health =
        new DirectoryHealth(
            config,
            new LibcFileOperations(),
            paths,
            StoreMetrics.NONE,
            System::nanoTime,
            backend -> {});
    DiskLookup disk = new DiskLookup(files, index, health, metrics, System::nanoTime, config);
    lookup = new BlockLookup(index, disk, health, metrics, false);
    known = BlockBytes.ids(1, knownBlocks);
    for (int i = 0; i < knownBlocks; i++) {
      index.add(known.high(i), known.low(i));
    }
    Linker linker = Linker.nativeLinker();
    access = call(linker, "access", ValueLayout.ADDRESS, ValueLayout.JAVA_INT);
    clock = call(linker, "clock_gettime", ValueLayout.JAVA_INT, ValueLayout.ADDRESS);
  }

  @SuppressWarnings("restricted") // Both functions return an int.
  private static MethodHandle call(Linker linker, String name, MemoryLayout... arguments) {
    return linker.downcallHandle(
        linker.defaultLookup().findOrThrow(name),
        FunctionDescriptor.of(ValueLayout.JAVA_INT, arguments),
        Linker.Option.critical(false));
  }

  public static void main(String[] args) throws Exception {
    int knownBlocks = args.length > 1 ? Integer.parseInt(args[1]) : 1 << 20;
    Path own = Files.createTempDirectory(Path.of(args[0]), "lookup-");
    try {
      LookupSpeed speed = new LookupSpeed(own, knownBlocks);
      speed.known();
      speed.unknown();
      speed.lookup.close();
    } finally {
      try (Stream<Path> all = Files.walk(own)) {
        for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(path);
        }
      }
    }
  }

  private void known() {
    System.out.printf("%d blocks known, prompts of %d%n", known.size(), PROMPT);
    int prompts = known.size() / PROMPT;
    BlockIds[] asked = new BlockIds[prompts];
    for (int i = 0; i < prompts; i++) {
      asked[i] = known.slice(i * PROMPT, (i + 1) * PROMPT);
    }
    report("prefix look-up, known", prompts, i -> require(lookup.prefix(asked[i]) == PROMPT - 1));
    report("full look-up, known", prompts, i -> require(lookup.all(asked[i]).length() == PROMPT));
  }

  private void unknown() {
    double[] bare = new double[RUNS];
    double[] own = new double[RUNS];
    double[] first = new double[RUNS];
    for (int run = -5; run < RUNS; run++) {
      List<MemorySegment> names = names(fresh());
      double accessed = realRate(PROMPT * PROMPTS, () -> names.forEach(this::access));
      BlockIds ids = fresh();
      BlockIds[] asked = prompts(ids);
      double looked = realRate(PROMPT * PROMPTS, () -> all(asked));
      double missed = realRate(PROMPTS, () -> prefixes(asked));
      if (run >= 0) {
        bare[run] = accessed;
        own[run] = looked;
        first[run] = missed;
      }
    }
    System.out.printf("access(2), absent files: %.2f M/s%n", median(bare));
    System.out.printf(
        "full look-up, unknown: %.2f M blocks/s, %.2f of access(2)%n",
        median(own), median(own) / median(bare));
    System.out.printf(
        "prefix look-up, first block absent: %.2f M prompts/s, %.2f of access(2)%n",
        median(first), median(first) / median(bare));
    BlockIds[] asked = prompts(fresh());
    all(asked);
    System.out.printf(
        "full look-up, unknown: %.0f B a prompt%n", allocated(() -> all(asked)) / PROMPTS);
  }

  private BlockIds fresh() {
    return BlockBytes.ids(seed++, PROMPT * PROMPTS);
  }

  private static BlockIds[] prompts(BlockIds ids) {
    BlockIds[] prompts = new BlockIds[PROMPTS];
    for (int i = 0; i < PROMPTS; i++) {
      prompts[i] = ids.slice(i * PROMPT, (i + 1) * PROMPT);
    }
    return prompts;
  }

  private List<MemorySegment> names(BlockIds ids) {
    NativePath path = new NativePath();
    MemorySegment[] names = new MemorySegment[ids.size()];
    Arena arena = Arena.ofAuto();
    for (int i = 0; i < names.length; i++) {
      names[i] = arena.allocateFrom(paths.block(path, ids.high(i), ids.low(i)).toString());
    }
    return Arrays.asList(names);
  }

  private void access(MemorySegment name) {
    try {
      require((int) access.invokeExact(name, 0) == -1);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private void all(BlockIds[] prompts) {
    for (BlockIds prompt : prompts) {
      require(lookup.all(prompt).isEmpty());
    }
  }

  private void prefixes(BlockIds[] prompts) {
    for (BlockIds prompt : prompts) {
      require(lookup.prefix(prompt) == -1);
    }
  }

  private void report(String what, int prompts, IntConsumer one) {
    Runnable round =
        () -> {
          for (int i = 0; i < prompts; i++) {
            one.accept(i);
          }
        };
    double[] rates = new double[RUNS];
    for (int run = -5; run < RUNS; run++) {
      double rate = rate(prompts * PROMPT, round);
      if (run >= 0) {
        rates[run] = rate;
      }
    }
    System.out.printf(
        "%s: %.1f M blocks/s (best %.1f), %.1f B a prompt%n",
        what, median(rates), Arrays.stream(rates).max().orElseThrow(), allocated(round) / prompts);
  }

  /**
   * Bytes of heap taken for a round of prompts. Right only while no garbage is collected: run with
   * -XX:+UseEpsilonGC.
   */
  private static double allocated(Runnable round) {
    int rounds = 20;
    long before = usedHeap();
    for (int i = 0; i < rounds; i++) {
      round.run();
    }
    return (usedHeap() - before) / (double) rounds;
  }

  private static long usedHeap() {
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  private double rate(int count, Runnable work) {
    long start = threadNanos();
    work.run();
    return count * 1e3 / (threadNanos() - start);
  }

  private static double realRate(int count, Runnable work) {
    long start = System.nanoTime();
    work.run();
    return count * 1e3 / (System.nanoTime() - start);
  }

  private long threadNanos() {
    try {
      require((int) clock.invokeExact(THREAD_TIME, time) == 0);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
    return time.getAtIndex(ValueLayout.JAVA_LONG, 0) * 1_000_000_000L
        + time.getAtIndex(ValueLayout.JAVA_LONG, 1);
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static void require(boolean condition) {
    if (!condition) {
      throw new AssertionError("a wrong answer");
    }
  }
}
