package ucm.store.posix;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Writer;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;

/**
 * A process of its own with a store in the same directory, which does what it is told, a line at a time.
 * It compares all bytes that it loads and dies of a wrong one.
 */
final class NeighbourProcess implements AutoCloseable {

  private final Process process;
  private final Writer commands;
  private final BufferedReader answers;

  /**
   * Starts one.
   *
   * @param capacity how many blocks it leaves there when it collects
   */
  NeighbourProcess(Path directory, int capacity) throws IOException {
    process = WriterProcess.start(NeighbourProcess.class, directory.toString(), "" + capacity);
    commands = process.outputWriter();
    answers = process.inputReader();
    assertThat(answers.readLine()).isEqualTo("ready");
  }

  /** Tells it something. */
  void tell(String command) throws IOException {
    commands.write(command + "\n");
    commands.flush();
  }

  /** What it says when it has done that. */
  String answer() throws IOException {
    String answer = answers.readLine();
    assertThat(answer).as("the other process has died").isNotNull();
    return answer;
  }

  /** Whether {@link #answer} would return at once. */
  boolean hasAnswered() throws IOException {
    return answers.ready() || !process.isAlive();
  }

  /** Both. */
  String ask(String command) throws IOException {
    tell(command);
    return answer();
  }

  /** Ends it as a signal would that nobody can catch. */
  void kill() throws InterruptedException {
    process.destroyForcibly();
    assertThat(process.waitFor()).isEqualTo(137);
  }

  @Override
  public void close() throws IOException {
    try {
      commands.close();
      process.onExit().orTimeout(TestStores.PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
    } finally {
      // Whatever it still does, no process outlives its test.
      process.destroyForcibly();
    }
  }

  public static void main(String[] args) throws Exception {
    Map<String, Object> settings =
        SmallSpace.room(Integer.parseInt(args[1]), Map.of("posix_gc_trigger_threshold_ratio", 1));
    try (TestStores stores = new TestStores(Path.of(args[0]), SmallSpace.LAYOUT);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8))) {
      PosixStore store = stores.open(settings);
      store.keeper().awaitFirstRound();
      say("ready");
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        switch (words[0]) {
          case "round" -> {
            store.keeper().makeRound();
            say(store.keeper().holdsLease() + " " + removed(stores));
          }
          case "rounds" -> {
            AtomicBoolean goesOn = new AtomicBoolean(true);
            Thread rounds =
                Thread.ofPlatform()
                    .start(
                        () -> {
                          while (goesOn.get()) {
                            store.keeper().makeRound();
                          }
                        });
            say("begun");
            // Until it is told anything, or nobody is there any more to tell it.
            lines.readLine();
            goesOn.set(false);
            rounds.join();
            say("" + removed(stores));
          }
          case "load" -> say(load(stores, store, ids(words)));
          case "layers" -> {
            dumpLayers(stores, store, ids(words));
            say("dumped");
          }
          case "whole" -> {
            stores.dump(store, ids(words));
            say("dumped");
          }
          default -> say("what is " + line);
        }
      }
    }
  }

  private static long removed(TestStores stores) {
    return stores.metrics.count("posix_gc_removed_blocks");
  }

  private static BlockIds ids(String[] words) {
    return BlockBytes.ids(Long.parseLong(words[1]), Integer.parseInt(words[2]));
  }

  /** Dumps one shard of all blocks after the other. */
  static void dumpLayers(TestStores stores, PosixStore store, BlockIds ids)
      throws InterruptedException {
    for (int shard = stores.layout.shardCount() - 1; shard >= 0; shard--) {
      stores.dumpShard(store, ids, shard).requireOk();
    }
  }

  /** Loads blocks one by one; counts those that are right, missing and damaged. */
  static String load(TestStores stores, PosixStore store, BlockIds ids)
      throws InterruptedException {
    Map<ShardOutcome, Integer> counts = new EnumMap<>(ShardOutcome.class);
    for (int i = 0; i < ids.size(); i++) {
      TransferResult result = stores.load(store, ids.slice(i, i + 1));
      assertThat(result.cause()).isNull();
      int failed = result.failedShards().nextSetBit(0);
      counts.merge(failed < 0 ? ShardOutcome.OK : result.outcome(failed), 1, Integer::sum);
    }
    return "%d right, %d missing, %d damaged"
        .formatted(
            counts.getOrDefault(ShardOutcome.OK, 0),
            counts.getOrDefault(ShardOutcome.MISSING, 0),
            counts.getOrDefault(ShardOutcome.CORRUPT, 0));
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
