package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** {@code ucm store}, on directories that {@code ucm trace replay} filled. */
class StoreCommandTest {

  private static final int BLOCKS = 40;

  @TempDir private static Path folder;
  private static Path filled;
  private static Path trace;

  @BeforeAll
  static void fill() throws IOException {
    filled = folder.resolve("filled");
    trace = folder.resolve("trace.jsonl");
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < BLOCKS / 2; i++) {
      lines.append(
          String.format(
              "{\"timestamp\": %d, \"input_length\": 1024, \"output_length\": 1,"
                  + " \"hash_ids\": [%d, %d]}%n",
              i, 2 * i, 2 * i + 1));
    }
    Files.writeString(trace, lines);
    CommandRun.Ended replay = CommandRun.run("trace", "replay", trace, "--config", config(filled));
    assertThat(replay.exitCode()).as(replay.all()).isZero();
  }

  private static Path config(Path directory, String... more) throws IOException {
    StringBuilder yaml =
        new StringBuilder(
            """
            ucm_connectors:
              - ucm_connector_name: "UcmPipelineStore"
                ucm_connector_config:
                  store_pipeline: "Posix"
                  storage_backends: "%s"
            """
                .formatted(directory));
    for (String line : more) {
      yaml.append("      ").append(line).append('\n');
    }
    Path file = folder.resolve("ucm-" + directory.getFileName() + more.length + ".yaml");
    return Files.writeString(file, yaml);
  }

  /** A copy of the filled directory that a test may change. */
  private static Path copy(String name) throws IOException {
    Path copy = folder.resolve(name);
    try (Stream<Path> files = Files.walk(filled)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Files.copy(file, copy.resolve(filled.relativize(file).toString()));
      }
    }
    return copy;
  }

  private static Path anyBlock(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(path -> path.getFileName().toString().matches("[0-9a-f]{32}"))
          .min(Path::compareTo)
          .orElseThrow();
    }
  }

  @Test
  void saysWhatADirectoryHolds() throws IOException {
    JsonNode stat = CommandRun.run("store", "stat", filled, "--json").json().get("directories");
    assertThat(stat).hasSize(1);
    assertThat(stat.get(0).get("blocks").asInt()).isEqualTo(BLOCKS);
    assertThat(stat.get(0).get("layouts")).hasSize(1);
    assertThat(stat.get(0).get("notes")).isEmpty();
    CommandRun.Ended table = CommandRun.run("store", "stat", "--config", config(filled));
    assertThat(table.exitCode()).as(table.all()).isZero();
    assertThat(table.out()).contains("blocks", "40, ", "of layout", "collector", "none");
  }

  @Test
  void listsBlocksSortedLimitedAndByPrefix() throws IOException {
    String id = anyBlock(filled).getFileName().toString();
    JsonNode all = CommandRun.run("store", "ls", filled, "--sort", "id", "--json").json();
    assertThat(all.get("blocks")).hasSize(BLOCKS);
    assertThat(all.get("blocks").get(0).get("id").asString()).isEqualTo(id);
    assertThat(all.get("blocks").get(0).get("checksums").asBoolean()).isTrue();
    CommandRun.Ended some = CommandRun.run("store", "ls", filled, "--sort", "id", "--limit", 3);
    assertThat(some.out().lines()).hasSize(4);
    assertThat(some.out().lines().skip(1).findFirst().orElseThrow()).startsWith(id);
    CommandRun.Ended one = CommandRun.run("store", "ls", filled, "--prefix", id.substring(0, 20));
    assertThat(one.out().lines()).hasSize(2);
    assertThat(one.out()).contains(id);
  }

  @Test
  void verifiesAndMovesDamageAside() throws IOException {
    Path copy = copy("damaged");
    assertThat(CommandRun.run("store", "verify", copy, "--max-mbps", 1000).exitCode()).isZero();
    Path block = anyBlock(copy);
    byte[] bytes = Files.readAllBytes(block);
    bytes[77] ^= 4;
    Files.write(block, bytes);
    CommandRun.Ended verify = CommandRun.run("store", "verify", copy, "--threads", 3);
    assertThat(verify.exitCode()).as(verify.all()).isEqualTo(1);
    assertThat(verify.out()).contains(block.toString(), "shard 0 is damaged", "1 damaged");
    assertThat(block).exists();
    CommandRun.Ended move = CommandRun.run("store", "verify", copy, "--quarantine", "--json");
    assertThat(move.exitCode()).isEqualTo(1);
    assertThat(move.json().get("damages").get(0).get("moved").asBoolean()).isTrue();
    assertThat(block).doesNotExist();
    assertThat(CommandRun.run("store", "verify", copy).exitCode()).isZero();
  }

  /** As the original leaves it, but for one block that an engine has stored since. */
  @Test
  void givesBlocksOfTheOriginalChecksums() throws IOException {
    Path copy = copy("original");
    JsonNode layout =
        CommandRun.run("store", "stat", copy, "--json").json().at("/directories/0/layouts/0");
    long blockSize = layout.get("block_size").asLong();
    Path kept = anyBlock(copy);
    for (Path block : allBlocks(copy)) {
      if (!block.equals(kept)) {
        Files.write(block, Arrays.copyOf(Files.readAllBytes(block), (int) blockSize));
      }
    }
    CommandRun.Ended dry = CommandRun.run("store", "adopt", copy, "--dry-run", "--json");
    assertThat(dry.exitCode()).as(dry.all()).isZero();
    assertThat(dry.json().get("adopted_blocks").asInt()).isEqualTo(BLOCKS - 1);
    CommandRun.Ended adopt = CommandRun.run("store", "adopt", copy);
    assertThat(adopt.exitCode()).as(adopt.all()).isZero();
    assertThat(adopt.out()).contains("gave 39 blocks checksums", "1 had them", "0 failed");
    JsonNode verified = CommandRun.run("store", "verify", copy, "--json").json();
    assertThat(verified.get("good_blocks").asInt()).isEqualTo(BLOCKS);
    for (Path block : allBlocks(copy)) {
      assertThat(block).hasSameBinaryContentAs(filled.resolve(copy.relativize(block)));
      Files.write(block, Arrays.copyOf(Files.readAllBytes(block), (int) blockSize));
    }
    CommandRun.Ended unknown = CommandRun.run("store", "adopt", copy);
    assertThat(unknown.exitCode()).isEqualTo(1);
    assertThat(unknown.err()).contains("nothing tells how", "block_size").doesNotContain("\tat ");
    CommandRun.Ended said =
        CommandRun.run(
            "store",
            "adopt",
            copy,
            "--block-size",
            blockSize,
            "--shard-size",
            layout.get("shard_size").asLong(),
            "--tensor-size",
            layout.get("tensor_size").asLong());
    assertThat(said.exitCode()).as(said.all()).isZero();
    for (Path block : allBlocks(copy)) {
      assertThat(block).hasSameBinaryContentAs(filled.resolve(copy.relativize(block)));
    }
    assertUsage("need --block-size", "store", "adopt", copy, "--shard-size", 4096);
    assertUsage("shard_size", "store", "adopt", copy, "--block-size", 9, "--shard-size", 4);
  }

  private static List<Path> allBlocks(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(path -> path.getFileName().toString().matches("[0-9a-f]{32}")).toList();
    }
  }

  @Test
  void makesRoomOnlyWhenItIsNotADryRun() throws IOException {
    Path copy = copy("crowded");
    CommandRun.Ended dry =
        CommandRun.run("store", "gc", copy, "--to-percent", 50, "--dry-run", "--json");
    assertThat(dry.exitCode()).as(dry.all()).isZero();
    assertThat(dry.json().get("removed_blocks").asInt()).isEqualTo(BLOCKS / 2);
    assertThat(blocks(copy)).isEqualTo(BLOCKS);
    CommandRun.Ended gc = CommandRun.run("store", "gc", copy, "--to-percent", 50);
    assertThat(gc.exitCode()).as(gc.all()).isZero();
    assertThat(gc.out()).contains("removed 20 blocks");
    assertThat(blocks(copy)).isEqualTo(BLOCKS / 2);
    Path capacity = config(copy, "posix_capacity_gb: 0.000001", "posix_gc_recycle_percent: 0.1");
    CommandRun.Ended configured = CommandRun.run("store", "gc", "--config", capacity);
    assertThat(configured.exitCode()).as(configured.all()).isZero();
    assertThat(blocks(copy)).isZero();
  }

  @Test
  void aMistakeGetsAMessageThatHelps() throws IOException {
    assertUsage("name directories", "store", "stat");
    assertUsage("one of the two", "store", "stat", filled, "--config", config(filled));
    assertUsage("--to-gb", "store", "gc", filled);
    assertUsage("--to-percent is 0 to 100", "store", "gc", filled, "--to-percent", 101);
    assertUsage("one that does with --store: ", "store", "ls", filled, "--store", "Cache");
    assertUsage("hexadecimal", "store", "ls", filled, "--prefix", "xyz");
    assertUsage("--threads", "store", "verify", filled, "--threads", 0);
    for (String command : List.of("stat", "ls", "verify", "gc", "adopt")) {
      Path nothing = folder.resolve("nothing");
      List<Object> args = new ArrayList<>(List.of("store", command, nothing));
      if (command.equals("gc")) {
        args.addAll(List.of("--to-gb", 1));
      }
      CommandRun.Ended missing = CommandRun.run(args.toArray());
      assertThat(missing.exitCode()).as(missing.all()).isEqualTo(2);
      assertThat(missing.err())
          .contains("there is no directory " + nothing)
          .doesNotContain("\tat ");
    }
    CommandRun.Ended foreign = CommandRun.run("store", "stat", folder);
    assertThat(foreign.exitCode()).isZero();
    assertThat(foreign.out()).contains("it is no cache directory");
  }

  private static void assertUsage(String expected, Object... args) {
    CommandRun.Ended ended = CommandRun.run(args);
    assertThat(ended.exitCode()).as(ended.all()).isEqualTo(2);
    assertThat(ended.err()).contains(expected).doesNotContain("Exception", "\tat ");
  }

  private static long blocks(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(path -> path.getFileName().toString().matches("[0-9a-f]{32}")).count();
    }
  }
}
