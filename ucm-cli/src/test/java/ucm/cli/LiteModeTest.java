package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import ucm.api.StoreException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.TraceOptions;

/** Commands under {@code use_lite}, and under the keys that say how much of the hits is used. */
class LiteModeTest {

  /** Four blocks, which come three times. */
  private static final String REQUEST =
      "{\"timestamp\": %d, \"input_length\": 2048, \"output_length\": 1, \"hash_ids\": [1, 2, 3,"
          + " 4]}\n";

  @TempDir private Path folder;
  private Path trace = Path.of("");
  private Path blocks = Path.of("");

  @BeforeEach
  void writesATrace() throws IOException {
    trace =
        Files.writeString(
            folder.resolve("trace.jsonl"),
            REQUEST.formatted(0) + REQUEST.formatted(1) + REQUEST.formatted(2));
    blocks = Files.createDirectory(folder.resolve("blocks"));
  }

  /** More memory than any machine of the tests has, and a directory that cannot be made. */
  private Path demanding(String top) throws IOException {
    return write(
        """
        store_pipeline: "Cache|Posix"
        storage_backends: "/proc/nowhere"
        cache_buffer_capacity_gb: 1000000
        """,
        top);
  }

  private Path posix(String top) throws IOException {
    return write("store_pipeline: Posix\nstorage_backends: " + blocks, top);
  }

  private Path write(String values, String top) throws IOException {
    return Files.writeString(
        folder.resolve("ucm.yaml"),
        "ucm_connector_name: UcmPipelineStore\nucm_connector_config:\n"
            + values.indent(2)
            + top
            + "\n");
  }

  private static JsonNode run(Object... args) {
    CommandRun.Ended ended = CommandRun.run(args);
    assertThat(ended.exitCode()).as(ended.err()).isZero();
    return ended.json();
  }

  @Test
  void replayInLiteModeNeedsNothingOfTheConfiguredPipeline() throws IOException {
    JsonNode data =
        run("trace", "replay", trace, "--json", "--config", demanding("use_lite: true"));
    assertThat(data.path("pipeline").asString()).isEqualTo("Fake");
    assertThat(data.path("hit_blocks").asInt()).isEqualTo(8);
  }

  @Test
  void explainInLiteModeNeedsNothingOfTheConfiguredPipeline() throws IOException {
    JsonNode data =
        run("explain", trace, "--request", 2, "--json", "--config", demanding("use_lite: true"));
    assertThat(data.path("pipeline").asString()).isEqualTo("Fake");
    assertThat(data.path("found_tokens").asInt()).isEqualTo(2048);
  }

  @Test
  void demoInLiteModeNeedsNothingOfTheConfiguredPipeline() throws IOException {
    Path config = demanding("use_lite: true");
    JsonNode data = run("demo", "--prompts", 1, "--input-len", 256, "--json", "--config", config);
    assertThat(data.path(0).path("blocks").asInt()).isEqualTo(2);
  }

  @Test
  void replayAndExplainTakeNoMoreThanHitRatioAllows() throws IOException {
    Path config = posix("hit_ratio: 0.5");
    JsonNode replay = run("trace", "replay", trace, "--json", "--config", config);
    assertThat(replay.path("hit_blocks").asInt()).isEqualTo(4);
    JsonNode explained = run("explain", trace, "--request", 2, "--json", "--config", config);
    assertThat(explained.path("found_tokens").asInt()).isEqualTo(2048);
    assertThat(explained.path("loaded_tokens").asInt()).isEqualTo(1024);
    assertThat(explained.path("missed_tokens").path("not_used").asInt()).isEqualTo(1024);
  }

  @Test
  void replayLeavesRequestsBelowTheThresholdsAlone() throws IOException {
    JsonNode skipped =
        run("trace", "replay", trace, "--json", "--config", posix("persist_token_threshold: 2049"));
    assertThat(skipped.path("hit_blocks").asInt()).isZero();
    assertThat(skipped.path("dumped_bytes").asLong()).isZero();
    JsonNode computed =
        run("trace", "replay", trace, "--json", "--config", posix("load_tokens_threshold: 2048"));
    assertThat(computed.path("hit_blocks").asInt()).isZero();
    assertThat(computed.path("dumped_bytes").asLong()).isPositive();
  }

  @Test
  void demoTakesNoMoreThanHitRatioAllows() throws IOException {
    JsonNode data =
        run(
            "demo",
            "--prompts",
            1,
            "--input-len",
            512,
            "--json",
            "--config",
            posix("hit_ratio: 0.5"));
    assertThat(data.path(1).path("hit_blocks").asInt()).isEqualTo(2);
  }

  @Test
  void liteRunCountsAsAnEngineInLiteModeDoes() throws IOException {
    JsonNode engine = run("lite", "run", trace, "--json", "--config", demanding("")).path(0);
    assertThat(engine.path("requests").asInt()).isEqualTo(3);
    assertThat(engine.path("blocks").asInt()).isEqualTo(12);
    assertThat(engine.path("external_blocks").asInt()).isEqualTo(8);
    assertThat(engine.path("unique_blocks").asInt()).isEqualTo(4);
    assertThat(engine.path("block_tokens").asInt()).isEqualTo(512);
    JsonNode one =
        run("lite", "run", trace, "--json", "--requests", 1, "--config", demanding("")).path(0);
    assertThat(one.path("requests").asInt()).isEqualTo(1);
  }

  @Test
  void doctorInLiteModeNeedsNothingOfTheConfiguredPipeline() throws IOException {
    JsonNode findings = run("doctor", "--json", "--config", demanding("use_lite: true"));
    assertThat(findings.path("ok").asBoolean()).as("%s", findings).isTrue();
    assertThat(findings.toString()).contains("store_pipeline is not looked at");
  }

  @Test
  void engineThatSharesItsPipelineCountsHitsInLiteMode() {
    KvLayout kv = KvLayout.uniform(3, 64, 32);
    EngineSpec spec = new EngineSpec("e", "m", "torch.bfloat16", 1, false, 16, kv);
    UcmConfig config =
        UcmConfig.of("Cache|Posix", Map.of("cache_buffer_capacity_gb", 1_000_000L))
            .withTopLevel(Map.of("use_lite", true), "test");
    ConnectorSetup setup =
        ConnectorSetup.of(config, StoreCatalog.find(), spec)
            .withTraces(new TraceOptions(folder, 1, 1));
    int[] tokens = new int[64];
    try (Pipeline shared = setup.openPipeline(0);
        SchedulerConnector scheduler = setup.scheduler(shared)) {
      assertThat(shared.spec()).hasToString("Fake");
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", tokens, 1), 0)).isZero();
      assertThat(scheduler.matchedTokens(PromptRequest.of("b", tokens, 1), 0)).isZero();
      assertThat(scheduler.statistics().externalBlocks()).isEqualTo(4);
    }
    UcmConfig bytes =
        UcmConfig.of("Posix", Map.of("storage_backends", blocks.toString(), "block_size", 64L));
    try (Pipeline posix = Pipeline.open(bytes, StoreCatalog.find())) {
      assertThatThrownBy(() -> setup.scheduler(posix))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("use_lite counts blocks that have no bytes");
    }
  }
}
