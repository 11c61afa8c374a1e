package ucm.store.nfs;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * A process of its own with a store on some directory, and a local tier above it where {@code
 * posix_storage_backends} is set: a node. It does what it reads from its standard input, a command a line, and
 * says what came of it:
 *
 * <pre>
 *   dump SEED COUNT    dumps blocks, a few at a time and each again until it is durable
 *     durable I.       block I is durable
 *     trouble          something failed, and is tried again
 *     done dump SEED
 *   load SEED COUNT    loads blocks, and compares every byte of what ended well
 *     loaded I, missed I, failed I, wrong I (and why)
 *     done load SEED
 * </pre>
 */
final class NodeProcess {

  private static final int AT_ONCE = 4;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private final Store store;

  private NodeProcess(Store store) {
    this.store = store;
  }

  /** Starts one. */
  static Process start(Path directory, String... settings) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    // It lives for seconds.
    command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", classPath()));
    command.addAll(List.of(NodeProcess.class.getName(), directory.toString()));
    command.addAll(List.of(settings));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  private static String classPath() {
    try {
      String name = NodeProcess.class.getName().replace('.', '/') + ".class";
      String found =
          Path.of(
                  Objects.requireNonNull(NodeProcess.class.getResource("NodeProcess.class"))
                      .toURI())
              .toString();
      String tests = found.substring(0, found.length() - name.length());
      return String.join(
          ":",
          Stream.of(
                  tests,
                  System.getProperty("jdk.module.path"),
                  System.getProperty("java.class.path"))
              .filter(Objects::nonNull)
              .toList());
    } catch (URISyntaxException e) {
      throw new AssertionError(e);
    }
  }

  /** The blocks of a seed. */
  static BlockIds ids(long seed, int count) {
    return BlockBytes.ids(seed, count);
  }

  /** The directory, then settings as {@code key=value}. */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    Map<String, Object> settings = TestNfs.settings(arguments[0]);
    for (int i = 1; i < arguments.length; i++) {
      String[] setting = arguments[i].split("=", 2);
      settings.put(setting[0], value(setting[1]));
    }
    boolean isTiered = settings.containsKey("posix_storage_backends");
    try (Store nfs = opened(new NfsStore(), null, settings);
        Store store = isTiered ? opened(new UpperTier(), nfs, settings) : nfs;
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      NodeProcess node = new NodeProcess(store);
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ", -1);
        node.obey(words[0], Long.parseLong(words[1]), Integer.parseInt(words[2]));
        say("done " + words[0] + " " + words[1]);
      }
    }
  }

  private static Store opened(Store store, @Nullable Store next, Map<String, Object> settings) {
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    if (config.hasErrors()) {
      throw new IllegalArgumentException(config.problems().toString());
    }
    store.open(StoreContext.of(next));
    return store;
  }

  private static Object value(String text) {
    if (text.equals("true") || text.equals("false")) {
      return Boolean.valueOf(text);
    }
    if (text.matches("[0-9]+\\.[0-9]+")) {
      return Double.valueOf(text);
    }
    return text.matches("[0-9]+") ? Long.valueOf(text) : text;
  }

  private void obey(String command, long seed, int count) throws InterruptedException {
    BlockIds ids = ids(seed, count);
    for (int from = 0; from < count; from += AT_ONCE) {
      int to = Math.min(count, from + AT_ONCE);
      if (command.equals("dump")) {
        dumpUntilDurable(ids.slice(from, to), from);
      } else {
        load(ids.slice(from, to), from);
      }
    }
  }

  private void dumpUntilDurable(BlockIds ids, int first) throws InterruptedException {
    BitSet durable = new BitSet();
    while (durable.cardinality() < ids.size()) {
      boolean ok =
          store
              .dump(
                  TransferMemory.ofBlocks(TestNfs.LAYOUT, Placement.SCATTERED, ids)
                      .fill()
                      .transfer())
              .await(PATIENCE)
              .ok();
      FlushResult flushed = store.flush(PATIENCE);
      BitSet found = ok && flushed.ok() ? store.durable(ids) : new BitSet();
      for (int i = 0; i < ids.size(); i++) {
        if (found.get(i) && !durable.get(i)) {
          durable.set(i);
          say("durable " + (first + i) + ".");
        }
      }
      if (durable.cardinality() < ids.size()) {
        say("trouble");
        LockSupport.parkNanos(PAUSE_NANOS);
      }
    }
  }

  private void load(BlockIds ids, int first) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(TestNfs.LAYOUT, Placement.SCATTERED, ids);
    TransferResult result = store.load(memory.transfer()).await(PATIENCE);
    int shards = TestNfs.LAYOUT.shardCount();
    for (int block = 0; block < ids.size(); block++) {
      String outcome = "loaded ";
      for (int i = block * shards; i < (block + 1) * shards; i++) {
        switch (result.outcome(i)) {
          case OK -> {
            try {
              memory.check(i);
            } catch (AssertionError e) {
              say("wrong " + (first + block) + " " + e.getMessage());
            }
          }
          case MISSING -> outcome = "missed ";
          default -> outcome = "failed ";
        }
      }
      say(outcome + (first + block));
    }
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
