package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

class TraceIT {

  // Beside the project, not in it: see the README.
  private static final Path SHARED_DATA = Path.of("../../shared/data");

  @TempDir private Path folder;

  @Test
  void analysesTheRealTraceToTheExactInteger() throws IOException {
    Path trace = SHARED_DATA.resolve("conversation_trace.jsonl");
    assumeTrue(
        Files.exists(trace), () -> "the conversation trace is not beside the project: " + trace);
    UcmProcess.Ended analysis =
        UcmProcess.run("trace", "analyze", trace, "--policies", "fifo", "--json").requireOk();
    JsonNode json = analysis.json();
    JsonNode summary = json.get("summary");
    assertThat(summary.get("requests").asLong()).isEqualTo(12_031);
    assertThat(summary.get("input_tokens").asLong()).isEqualTo(144_793_823);
    assertThat(summary.get("output_tokens").asLong()).isEqualTo(4_122_048);
    assertThat(summary.get("block_references").asLong()).isEqualTo(288_500);
    assertThat(summary.get("unique_blocks").asLong()).isEqualTo(182_790);
    assertThat(summary.get("ideal_hit_blocks").asLong()).isEqualTo(105_710);
    List<String> rows = new ArrayList<>();
    for (JsonNode row : json.get("curve")) {
      rows.add(
          String.join(
              ",",
              row.get("policy").asString(),
              row.get("touch_order").asString(),
              row.get("capacity_blocks").asString(),
              row.get("hit_blocks").asString(),
              row.get("hit_tokens").asString()));
    }
    List<String> golden =
        Files.readAllLines(SHARED_DATA.resolve("conversation_lru_golden.csv")).stream()
            .skip(1)
            .filter(line -> !line.isBlank() && !line.contains("unbounded"))
            .toList();
    assertThat(rows).containsExactlyInAnyOrderElementsOf(golden);
  }

  @Test
  void replaysThroughFakeWithTheHitsOfAnUnboundedCache() throws IOException {
    Path trace = chat(300);
    long ideal =
        UcmProcess.run("trace", "analyze", trace, "--json")
            .json()
            .get("summary")
            .get("ideal_hit_blocks")
            .asLong();
    Path config = UcmYaml.in(folder, "store_pipeline: Fake");
    JsonNode replay = UcmProcess.run("trace", "replay", trace, "--config", config, "--json").json();
    assertThat(replay.get("hit_blocks").asLong()).isEqualTo(ideal).isPositive();
    assertThat(replay.get("bytes_moved").asBoolean()).isFalse();
  }

  @Test
  void replaysThroughCacheAndPosixAndComparesEveryByte() throws IOException {
    Path trace = chat(300);
    Path blocks = folder.resolve("blocks");
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: Cache|Posix",
            "storage_backends: " + blocks,
            "cache_buffer_capacity_gb: 0.01");
    UcmProcess.Ended first =
        UcmProcess.run("trace", "replay", trace, "--config", config, "--json").requireOk();
    JsonNode replay = first.json();
    assertThat(replay.get("failed_blocks").asLong() + replay.get("pending_blocks").asLong())
        .isZero();
    assertThat(replay.get("loaded_bytes").asLong())
        .isEqualTo(replay.get("hit_blocks").asLong() * 16_384)
        .isPositive();
    JsonNode again = UcmProcess.run("trace", "replay", trace, "--config", config, "--json").json();
    assertThat(again.get("hit_blocks").asLong())
        .as("what one process stored, the next one finds")
        .isEqualTo(again.get("blocks").asLong());
  }

  /** Conversations that grow turn by turn, in Mooncake's format. */
  private Path chat(int requests) throws IOException {
    SplittableRandom random = new SplittableRandom(7);
    List<List<Integer>> conversations = new ArrayList<>();
    StringBuilder lines = new StringBuilder();
    int nextBlock = 1;
    for (int i = 0; i < requests; i++) {
      int chosen = random.nextInt(40);
      while (conversations.size() <= chosen) {
        conversations.add(new ArrayList<>(List.of(0)));
      }
      List<Integer> blocks = conversations.get(chosen);
      for (int grow = random.nextInt(1, 6); grow > 0; grow--) {
        blocks.add(nextBlock++);
      }
      lines.append(
          "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": 10, \"hash_ids\": %s}%n"
              .formatted(i * 100, blocks.size() * 512, blocks));
    }
    return Files.writeString(folder.resolve("chat.jsonl"), lines);
  }
}
