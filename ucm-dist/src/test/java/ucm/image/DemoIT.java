package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

class DemoIT {

  @TempDir private Path folder;

  @Test
  void findsEveryBlockAfterTheRestartAndCleansUp() throws IOException {
    UcmProcess.Ended demo =
        UcmProcess.run(
                "demo",
                "--prompts",
                3,
                "--input-len",
                2560,
                "--buffer-gb",
                0.1,
                "--dir",
                folder.resolve("made/for/it"))
            .requireOk();
    assertThat(demo.err()).as("the table says it").doesNotContain("request_id");
    assertThat(demo.out()).contains("Round 2 found 20 of 20 blocks");
    assertThat(entries(folder)).isZero();
  }

  @Test
  void printsJsonAlone() {
    UcmProcess.Ended demo =
        UcmProcess.run(
            "demo",
            "--prompts",
            1,
            "--input-len",
            1280,
            "--buffer-gb",
            0.1,
            "--dir",
            folder,
            "--json");
    JsonNode rounds = demo.json();
    assertThat(rounds).hasSize(2);
    assertThat(rounds.get(0).get("hit_blocks").asInt()).isZero();
    assertThat(rounds.get(1).get("hit_blocks").asInt()).isEqualTo(10);
    assertThat(rounds.get(1).get("moved_bytes").asLong()).isEqualTo(10 * 24 * 65_536L);
  }

  @Test
  void namesARoundByWhatItDid() throws IOException {
    Path file =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Posix\"",
            "storage_backends: \"" + folder.resolve("blocks") + "\"",
            "cache_buffer_capacity_gb: 0.1");
    assertThat(small(file, 1).out()).contains("1: empty store, dump", "2: after restart, load");
    assertThat(small(file, 1).out()).contains("1: all found, load").doesNotContain("empty store");
    assertThat(small(file, 2).out()).contains("1: some found, load and dump");
  }

  @Test
  void aPipelineWithoutBytesHasMovedNone() throws IOException {
    Path file = UcmYaml.in(folder, "store_pipeline: \"Fake\"");
    assertThat(small(file, 1).out())
        .contains("no bytes were moved: this pipeline keeps metadata only")
        .containsPattern("1: empty store, dump +0 +10 +0\\.00 +- ");
    JsonNode json = UcmProcess.run("demo", "--config", file, "--prompts", 1, "--json").json();
    assertThat(json.get(0).get("moved_bytes").asLong()).isZero();
  }

  private static UcmProcess.Ended small(Path file, int prompts) {
    UcmProcess.Ended demo =
        UcmProcess.run("demo", "--config", file, "--prompts", prompts, "--input-len", 1280)
            .requireOk();
    return demo;
  }

  @Test
  void takesOtherModels() {
    for (String model : new String[] {"deepseek-r1", "Qwen/QwQ-32B"}) {
      UcmProcess.Ended demo =
          UcmProcess.run(
                  "demo",
                  "--model",
                  model,
                  "--prompts",
                  1,
                  "--input-len",
                  256,
                  "--buffer-gb",
                  0.2,
                  "--dir",
                  folder)
              .requireOk();
      assertThat(demo.out()).contains("Round 2 found 2 of 2 blocks");
    }
  }

  @Test
  void saysBeforeWritingAnythingWhatIsLacking() throws IOException {
    UcmProcess.Ended disk = UcmProcess.run("demo", "--prompts", 100_000_000, "--dir", folder);
    assertThat(disk.exitCode()).isEqualTo(2);
    assertThat(disk.err()).contains("are free", "--dir", "--prompts");
    UcmProcess.Ended memory = UcmProcess.run("demo", "--buffer-gb", 1_000_000, "--dir", folder);
    assertThat(memory.exitCode()).isEqualTo(2);
    assertThat(memory.err()).contains("are available", "--buffer-gb");
    assertThat(UcmProcess.run("demo", "--model", "gpt-9").err()).contains("qwen2.5-0.5b");
    assertThat(entries(folder)).isZero();
  }

  @Test
  void leavesNothingBehindAfterCtrlC() throws Exception {
    // It waits for the reader of its lines long before the last one: the signal is not too late.
    Process demo =
        UcmProcess.start(
            UcmProcess.IMAGE,
            Map.of("UC_LOGGER_LEVEL", "debug"),
            "demo",
            "--prompts",
            1500,
            "--input-len",
            128,
            "--dir",
            folder);
    try (BufferedReader err =
        new BufferedReader(
            new java.io.InputStreamReader(demo.getErrorStream(), StandardCharsets.UTF_8))) {
      String line = err.readLine();
      while (line != null && !line.contains("request_id: demo-1,")) {
        line = err.readLine();
      }
      assertThat(line).isNotNull();
      assertThat(entries(folder)).isPositive();
      new ProcessBuilder("kill", "-INT", Long.toString(demo.pid())).start().waitFor();
      assertThat(err.lines().filter(rest -> rest.contains("Exception") || rest.startsWith("\tat ")))
          .isEmpty();
    }
    assertThat(demo.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(demo.exitValue()).isEqualTo(130);
    assertThat(entries(folder)).isZero();
  }

  private static long entries(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.count();
    }
  }
}
