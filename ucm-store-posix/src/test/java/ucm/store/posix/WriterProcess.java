package ucm.store.posix;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.TestProcess;

/**
 * A process of its own that dumps blocks until it is killed or has dumped as many as it was told, and
 * writes a line with the number of each block that flush and durable call durable.
 */
final class WriterProcess {

  static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16384, 131072);

  private static final int AT_ONCE = 4;

  private WriterProcess() {}

  /**
   * Starts one.
   *
   * @param mode {@code whole} dumps all shards of a block together, {@code layers} shard by shard; behind
   *     it may stand a blank and an engine, which then runs with direct I/O
   */
  static Process start(Path directory, String mode, String durability, long seed, int blocks)
      throws IOException {
    return start(
        WriterProcess.class, directory.toString(), mode, durability, "" + seed, "" + blocks);
  }

  /** Starts the main method of a class of these tests. */
  static Process start(Class<?> main, String... arguments) throws IOException {
    return TestProcess.builder(main, arguments)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  /** What a process reports until it ends. */
  static List<Integer> reported(Process process) throws IOException {
    List<Integer> reported = new ArrayList<>();
    try (BufferedReader lines = process.inputReader()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        // A line without its end was cut off by the kill; numbers end with a dot.
        if (line.endsWith(".")) {
          reported.add(Integer.parseInt(line.substring(0, line.length() - 1)));
        }
      }
    }
    return reported;
  }

  /** The id of a block, as one list. */
  static BlockIds id(long seed, int block) {
    return BlockBytes.ids(seed * 1_000_003 + block, 1);
  }

  private static Map<String, Object> settings(String mode, String durability) {
    int blank = mode.indexOf(' ');
    return blank < 0
        ? Map.of("durability", durability)
        : Map.of(
            "durability",
            durability,
            "io_direct",
            true,
            "posix_io_engine",
            mode.substring(blank + 1));
  }

  public static void main(String[] args) throws Exception {
    Path directory = Path.of(args[0]);
    boolean layers = args[1].startsWith("layers");
    long seed = Long.parseLong(args[3]);
    int blocks = Integer.parseInt(args[4]);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      PosixStore store = stores.open(settings(args[1], args[2]));
      for (int first = 0; first < blocks; first += AT_ONCE) {
        long[] words = new long[2 * Math.min(AT_ONCE, blocks - first)];
        for (int i = 0; i < words.length / 2; i++) {
          words[2 * i] = id(seed, first + i).high(0);
          words[2 * i + 1] = id(seed, first + i).low(0);
        }
        BlockIds ids = BlockIds.wrap(words);
        if (layers) {
          for (int shard = 0; shard < LAYOUT.shardCount(); shard++) {
            stores.dumpShard(store, ids, shard).requireOk();
          }
        } else {
          stores.dump(store, ids);
        }
        FlushResult flushed = store.flush(Duration.ofSeconds(10));
        boolean durable = flushed.ok() && store.durable(ids).cardinality() == ids.size();
        StringBuilder report = new StringBuilder();
        int[] numbers = new int[durable ? ids.size() : 0];
        Arrays.setAll(numbers, i -> i);
        for (int i : numbers) {
          report.append(first + i).append(".\n");
        }
        System.out.print(report);
        System.out.flush();
      }
    }
  }
}
