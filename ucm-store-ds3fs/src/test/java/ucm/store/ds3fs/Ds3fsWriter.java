package ucm.store.ds3fs;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.testkit.BlockBytes;

/**
 * A process of its own that dumps blocks until it is killed, and writes a line with the number of each
 * block that flush and durable call durable.
 */
final class Ds3fsWriter {

  static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16384, 131072);

  private static final int AT_ONCE = 4;

  private Ds3fsWriter() {}

  /** Starts one that dumps whole blocks, or layer by layer. */
  static Process start(Path mount, Path directory, boolean byLayer, long seed) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    // It lives for seconds.
    command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", classPath()));
    command.addAll(
        List.of(Ds3fsWriter.class.getName(), directory.toString(), "" + byLayer, "" + seed));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("SIM_HF3FS_MOUNTS", mount.toString());
    builder.environment().put("SIM_HF3FS_DELAY_US", "200");
    builder.environment().put("SIM_HF3FS_SHORT", "10");
    builder.environment().put("SIM_HF3FS_SEED", "" + seed);
    return builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  private static String classPath() {
    return String.join(
        ":",
        Stream.of(
                "target/test-classes",
                "target/classes",
                System.getProperty("jdk.module.path"),
                System.getProperty("java.class.path"))
            .filter(Objects::nonNull)
            .toList());
  }

  /** The id of a block, as one list. */
  static BlockIds id(long seed, int block) {
    return BlockBytes.ids(seed * 1_000_003 + block, 1);
  }

  public static void main(String[] args) throws Exception {
    boolean byLayer = Boolean.parseBoolean(args[1]);
    long seed = Long.parseLong(args[2]);
    try (TestDs3fs stores = new TestDs3fs(Path.of(args[0]), LAYOUT)) {
      Store store = stores.open(Map.of("durability", "fdatasync"));
      for (int first = 0; ; first += AT_ONCE) {
        long[] words = new long[2 * AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
          words[2 * i] = id(seed, first + i).high(0);
          words[2 * i + 1] = id(seed, first + i).low(0);
        }
        BlockIds ids = BlockIds.wrap(words);
        if (byLayer) {
          for (int shard = 0; shard < LAYOUT.shardCount(); shard++) {
            stores.dumpShard(store, ids, shard).requireOk();
          }
        } else {
          stores.dump(store, ids).requireOk();
        }
        FlushResult flushed = store.flush(TestDs3fs.PATIENCE);
        if (flushed.ok() && store.durable(ids).cardinality() == ids.size()) {
          StringBuilder report = new StringBuilder();
          for (int i = 0; i < AT_ONCE; i++) {
            report.append(first + i).append(".\n");
          }
          System.out.print(report);
          System.out.flush();
        }
      }
    }
  }
}
