package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/**
 * The simulated engine of the image over Cache|Posix. Every run compares all loaded bytes. The
 * simulated compute is slow on purpose: what hits save is seconds, however loaded the machine is.
 */
class BenchServeIT {

  @TempDir private Path folder;
  private Path store;
  private Path config;

  @BeforeEach
  void writeConfig() throws IOException {
    store = Files.createDirectory(folder.resolve("store"));
    config = Files.writeString(folder.resolve("ucm.yaml"), text());
  }

  private String text() {
    return """
    ucm_connectors:
      - ucm_connector_name: "UcmPipelineStore"
        ucm_connector_config:
          store_pipeline: "Cache|Posix"
          storage_backends: "%s"
          cache_buffer_capacity_gb: 0.05
    """
        .formatted(store);
  }

  private UcmProcess.Ended serve(Object... args) {
    Object[] all =
        Stream.of(new Object[] {"bench", "serve", "--config", config}, args)
            .flatMap(Stream::of)
            .toArray();
    return UcmProcess.run(all);
  }

  private void requireNothingLeft() throws IOException {
    try (Stream<Path> left = Files.list(store)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void hitsComeSoonerThanFullComputeOnSeveralRanks() throws IOException {
    UcmProcess.Ended bench =
        serve(
            "--lengths",
            640,
            "--bytes-per-token",
            2048,
            "--concurrency",
            "1,2",
            "--ms-per-token",
            2,
            "--repeat",
            3,
            "--tp",
            2,
            "--output-tokens",
            2,
            "--decode-ms",
            1,
            "--json");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    JsonNode data = bench.json();
    assertThat(data.get("simulated_compute").asString()).startsWith("2.0 ms a token, as given");
    assertThat(data.get("results").size()).isEqualTo(2);
    for (JsonNode result : data.get("results")) {
      double full = result.get("full_compute_ttft_ms").asDouble();
      double hits = result.get("hits_ttft_ms").get("median").asDouble();
      assertThat(full).isGreaterThanOrEqualTo(1280);
      assertThat(hits).as("what is not found is computed").isGreaterThanOrEqualTo(256);
      assertThat(hits).isLessThan(full);
      assertThat(result.get("external_hit_rate").asDouble()).isEqualTo(0.8, within(1e-9));
      // Four of five blocks of 128 tokens, of 2048 bytes each, in each run.
      assertThat(result.get("loaded_bytes").asLong())
          .isEqualTo(3 * result.get("concurrency").asLong() * 4 * 128 * 2048);
      assertThat(result.get("load_failed_blocks").asLong()).isZero();
    }
    requireNothingLeft();
  }

  @Test
  void requestsThatFindNoMemoryArePreemptedAndLoadWhatTheyHadComputed() throws IOException {
    UcmProcess.Ended bench =
        serve(
            "--lengths",
            896,
            "--bytes-per-token",
            2048,
            "--concurrency",
            3,
            "--ms-per-token",
            0.01,
            "--decode-ms",
            0.1,
            "--output-tokens",
            300,
            "--kv-tokens",
            1920,
            "--json");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    JsonNode result = bench.json().get("results").get(0);
    assertThat(result.get("preemptions").asInt()).isPositive();
    assertThat(result.get("most_requests_in_a_step").asInt()).isGreaterThan(1);
    assertThat(result.get("loaded_bytes").asLong())
        .as("more than the five stored blocks of each, because what was lost is loaded again")
        .isGreaterThan(3L * 5 * 128 * 2048);
    requireNothingLeft();
  }

  @Test
  void callsThroughTheDaemonBesideTheSameInThisProcess() {
    Path socket = folder.resolve("run").resolve("ucm.sock");
    Process daemon = UcmProcess.start(UcmProcess.IMAGE, Map.of(), "serve", "--socket", socket);
    try {
      while (!Files.exists(socket)) {
        assertThat(daemon.isAlive()).isTrue();
        Thread.onSpinWait();
      }
      UcmProcess.Ended bench =
          serve(
              "--remote",
              "--socket",
              socket,
              "--lengths",
              640,
              "--bytes-per-token",
              2048,
              "--repeat",
              2,
              "--json");
      assertThat(bench.exitCode()).as(bench.all()).isZero();
      JsonNode measures = bench.json().get("measures");
      assertThat(measures.size()).isEqualTo(8);
      for (JsonNode measure : measures) {
        assertThat(measure.get("median").asDouble()).isPositive();
        assertThat(measure.get("limit").get("median").asDouble()).isPositive();
      }
    } finally {
      daemon.destroy();
    }
  }

  @Test
  void tracesAreServedWhenTheirRequestsCome() throws IOException {
    List<String> lines =
        IntStream.range(0, 12)
            .mapToObj(
                i ->
                    String.format(
                        "{\"timestamp\": %d, \"input_length\": 1024, \"output_length\": 2,"
                            + " \"hash_ids\": [%d, %d]}",
                        i * 100, i % 3 * 2, i % 3 * 2 + 1))
            .toList();
    Path trace = Files.write(folder.resolve("trace.jsonl"), lines);
    UcmProcess.Ended bench =
        serve(
            "--trace",
            trace,
            "--requests",
            9,
            "--speed",
            2,
            "--ms-per-token",
            0.5,
            "--bytes-per-token",
            2048,
            "--decode-ms",
            1,
            "--json");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    JsonNode data = bench.json();
    assertThat(data.get("ucm").get("requests").asInt()).isEqualTo(9);
    assertThat(data.get("ucm").get("seconds").asDouble()).isGreaterThan(0.4);
    assertThat(data.get("ucm").get("external_tokens").asLong()).isPositive();
    assertThat(data.get("full_compute").get("external_tokens").asLong()).isZero();
    assertThat(data.get("full_compute").get("ttft_ms_mean").asDouble()).isGreaterThan(512);
    requireNothingLeft();
  }

  @Test
  void tableSaysFirstWhatIsSimulated() throws IOException {
    UcmProcess.Ended bench =
        serve(
            "--lengths",
            300,
            "--concurrency",
            1,
            "--gpu",
            "h200",
            "--output-tokens",
            1,
            "--bytes-per-token",
            2048);
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.out())
        .startsWith("Simulated compute: the operations of Qwen/QwQ-32B on 4 x H200 at 50%")
        .contains("No model ran, and no GPU was used")
        .contains("2,048 bytes of KV cache a token through Cache|Posix")
        .contains("Qwen/QwQ-32B itself leaves 262,144 bytes a token")
        .contains("INPUT TOKENS  CONCURRENT  FULL COMPUTE MS  UCM 80% MS  SPEED-UP")
        .contains("Every loaded byte was compared");
  }

  @Test
  void servesTheModelsOwnBytesAndLeavesOutWhatMemoryDoesNotHold() throws IOException {
    UcmProcess.Ended bench =
        serve(
            "--lengths",
            "300,1000000",
            "--concurrency",
            1,
            "--ms-per-token",
            0.1,
            "--output-tokens",
            1);
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.out())
        .contains("262,144 bytes of KV cache a token through Cache|Posix")
        .contains("Full compute makes 2.62 GB of KV cache a second at 300 tokens")
        .contains("(INPUT TOKENS x CONCURRENT): 1,000,000 x 1. --bytes-per-token")
        .doesNotContain("itself leaves");
    requireNothingLeft();
  }

  /** Instances of one node share neither names nor buffers, as their segments show. */
  @Test
  void twoInstancesOnANodeDoNotDisturbEachOther() throws IOException {
    Object[] args = {
      "bench",
      "serve",
      "--config",
      config,
      "--model",
      "deepseek-r1",
      "--bytes-per-token",
      1024,
      "--layers",
      4,
      "--tp",
      2,
      "--lengths",
      "500,1000",
      "--concurrency",
      2,
      "--ms-per-token",
      0.1,
      "--repeat",
      2,
      "--output-tokens",
      4,
      "--decode-ms",
      1,
      "--json"
    };
    Map<String, String> environment = Map.of();
    Process first = UcmProcess.start(UcmProcess.IMAGE, environment, args);
    Process second = UcmProcess.start(UcmProcess.IMAGE, environment, args);
    for (UcmProcess.Ended ended : List.of(UcmProcess.finish(first), UcmProcess.finish(second))) {
      assertThat(ended.exitCode()).as(ended.all()).isZero();
      assertThat(ended.err()).as("one buffer for both ranks").contains("shared");
      for (JsonNode result : ended.json().get("results")) {
        assertThat(result.get("load_failed_blocks").asLong()).isZero();
        assertThat(result.get("external_hit_rate").asDouble()).isPositive();
      }
    }
    requireNothingLeft();
  }

  @Test
  void interruptionRemovesWhatWasStored() throws IOException, InterruptedException {
    Process bench =
        UcmProcess.start(
            UcmProcess.IMAGE,
            Map.of(),
            "bench",
            "serve",
            "--config",
            config,
            "--tp",
            2,
            "--lengths",
            2000,
            "--bytes-per-token",
            2048,
            "--ms-per-token",
            1000);
    try (BufferedReader err =
        new BufferedReader(new InputStreamReader(bench.getErrorStream(), StandardCharsets.UTF_8))) {
      // Its beginning is stored; minutes of simulated compute lie ahead.
      String line = err.readLine();
      while (line != null && !line.contains("request_id: request-0")) {
        line = err.readLine();
      }
      assertThat(line).contains("hit external: 12");
      new ProcessBuilder("kill", "-INT", Long.toString(bench.pid())).start().waitFor();
      assertThat(err.lines().filter(rest -> rest.contains("Exception") || rest.contains("\tat ")))
          .isEmpty();
    }
    assertThat(bench.waitFor(120, TimeUnit.SECONDS)).isTrue();
    assertThat(bench.exitValue()).isEqualTo(130);
    requireNothingLeft();
  }

  @Test
  void liteModeComputesEverythingAndSaysSo() throws IOException {
    config = Files.writeString(folder.resolve("lite.yaml"), "use_lite: true\n" + text());
    UcmProcess.Ended bench =
        serve(
            "--lengths", 640, "--bytes-per-token", 2048, "--ms-per-token", 0.1, "--concurrency", 1);
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.err()).contains("use_lite: the engine is told of no hit");
    assertThat(bench.out()).contains(" 0.0%  ");
    requireNothingLeft();
  }
}
