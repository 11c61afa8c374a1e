package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

class ExplainIT {

  @TempDir private Path folder;

  private Path trace() throws IOException {
    return Files.writeString(
        folder.resolve("trace.jsonl"),
        """
        {"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}
        {"timestamp": 1, "input_length": 1636, "output_length": 1, "hash_ids": [1, 2, 3, 4]}
        """);
  }

  @Test
  void explainsARequestThroughARealPipelineAndLeavesNothing() throws IOException {
    Path blocks = Files.createDirectory(folder.resolve("blocks"));
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Posix\"",
            "storage_backends: \"" + blocks + "\"",
            "cache_buffer_capacity_gb: 0.05");
    UcmProcess.Ended ended =
        UcmProcess.run("explain", trace(), "--request", 2, "--config", config, "--json")
            .requireOk();
    JsonNode json = ended.json();
    assertThat(json.get("asked_tokens").asLong()).isEqualTo(1636);
    assertThat(json.get("found_tokens_by_tier").get("cache").asLong()).isEqualTo(1024);
    assertThat(json.get("found_tokens_by_tier").get("posix").asLong()).isZero();
    assertThat(json.get("loaded_tokens").asLong()).isEqualTo(1024);
    assertThat(json.get("used_tokens").asLong()).isEqualTo(1024);
    assertThat(json.get("missed_tokens").get("never_stored").asLong()).isEqualTo(512);
    assertThat(json.get("missed_tokens").get("too_short").asLong()).isEqualTo(100);
    try (Stream<Path> left = Files.list(blocks)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void explainsWithoutAConfigurationAndInATable() throws IOException {
    UcmProcess.Ended ended =
        UcmProcess.run("explain", trace(), "--request", 2, "--hbm-blocks", 1).requireOk();
    assertThat(ended.out())
        .contains("request 2 (trace-2) after 1 others through Fake, blocks of 512 tokens")
        .containsPattern("asked +1,636 +100.0%")
        .containsPattern("in HBM +512 +31.3%")
        .containsPattern("  in fake +512")
        .containsPattern("missed: never stored before in this replay +512 +31.3%");
  }

  @Test
  void refusesAPluginFromWhichItCannotRemoveItsBlocks() throws IOException {
    Path plugins = folder.resolve("plugins");
    PluginJar.buildFaulty(folder.resolve("plugin"), plugins.resolve("faulty.jar"));
    Path config = UcmYaml.in(folder, "store_pipeline: \"Faulty|Empty\"");
    UcmProcess.Ended ended =
        UcmProcess.run(
            "explain", trace(), "--request", 2, "--config", config, "--plugins", plugins);
    assertThat(ended.exitCode()).as(ended.all()).isEqualTo(2);
    assertThat(ended.err())
        .contains("explain would leave its blocks in Faulty|Empty", "cannot remove blocks");
  }

  @Test
  void refusesARequestThatTheTraceDoesNotHave() throws IOException {
    UcmProcess.Ended ended = UcmProcess.run("explain", trace(), "--request", 3);
    assertThat(ended.exitCode()).isEqualTo(2);
    assertThat(ended.err()).contains("the trace has 2 requests; --request asks for number 3");
    assertThat(UcmProcess.run("explain", trace(), "--request", 0).exitCode()).isEqualTo(2);
  }
}
