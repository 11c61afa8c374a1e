package ucm.pipeline.connector.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static ucm.pipeline.connector.TestEngines.gqa;
import static ucm.pipeline.connector.TestEngines.tokens;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.TestEngines;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.RecordingMetrics;

class LiteMonitorTest {

  private static final Offset<Double> CLOSE = within(1e-9);

  @TempDir private Path folder;
  private final RecordingMetrics metrics = new RecordingMetrics();

  private Path file() {
    return folder.resolve("lite/test-" + ProcessHandle.current().pid() + ".json");
  }

  @Test
  void anEngineInLiteModeLeavesItsHitRateAndCurve() throws IOException {
    ConnectorSetup setup =
        TestEngines.setup(gqa(1), TestEngines.top("use_lite", true), metrics)
            .withTraces(new TraceOptions(folder, 1 << 20, 1));
    try (SchedulerConnector scheduler = setup.scheduler()) {
      PromptRequest again = PromptRequest.of("b", tokens(0, 8), 7);
      scheduler.matchedTokens(PromptRequest.of("a", tokens(0, 8), 7), 0);
      scheduler.matchedTokens(again, 0);
      scheduler.matchedTokens(again, 4);
      scheduler.matchedTokens(PromptRequest.of("c", tokens(100, 8), 7), 0);
    }
    assertThat(metrics.gauge("lite_requests")).isEqualTo(3);
    assertThat(metrics.gauge("lite_hit_rate")).isEqualTo(1.0 / 3, CLOSE);
    assertThat(metrics.gauge("lite_unique_blocks")).isEqualTo(4);
    assertThat(metrics.gauge("lite_sample_rate")).isEqualTo(1);
    assertThat(metrics.gauge("lite_knee_tokens")).isPositive();
    assertThat(metrics.gauge("lite_lru_hit_rate_1m_tokens")).isEqualTo(1.0 / 3, CLOSE);
    assertThat(Files.readString(file()))
        .startsWith("{\"instance\":\"test\"")
        .contains("\"running\":false", "\"requests\":3", "\"external_blocks\":2")
        .contains("{\"capacity_tokens\":10000000000,\"token_hit_rate\":0.333");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file())))
        .isEqualTo("rw-------");
    assertThat(file().getParent())
        .isDirectoryNotContaining(path -> path.toString().endsWith("part"));
  }

  @Test
  @Timeout(60)
  void publishesWhileItRuns() throws IOException {
    try (LiteMonitor monitor = new LiteMonitor(gqa(1), folder, Duration.ofMillis(1), metrics)) {
      monitor.add(
          BlockHasher.of("model", 1, "torch.bfloat16").hash(tokens(0, 8), 4),
          8,
          HitStatistics.NONE.plus(2, 0, 0));
      while (metrics.gauge("lite_requests") != 1 || !Files.exists(file())) {
        Thread.onSpinWait();
      }
      assertThat(Files.readString(file())).contains("\"running\":true", "\"requests\":1");
    }
    assertThat(Files.readString(file())).contains("\"running\":false");
    assertThat(metrics.count("connector_faults")).isZero();
  }

  @Test
  void aFolderThatCannotBeWrittenIsCountedAndDisturbsNoCaller() throws IOException {
    Files.writeString(folder.resolve("lite"), "a file where the folder should be");
    new LiteMonitor(gqa(1), folder, LiteMonitor.INTERVAL, metrics).close();
    assertThat(metrics.count("connector_faults")).isEqualTo(1);
  }
}
