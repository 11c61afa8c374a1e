package ucm.pipeline.connector.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.pipeline.connector.TestEngines.tokens;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.TestEngines;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.RecordingMetrics;

class TraceRecorderTest {

  private static final long MICROS = 1_700_000_000_000_042L;
  private static final BlockIds IDS =
      BlockHasher.of("model", 1, "torch.bfloat16").hash(tokens(0, 8), 4);

  @TempDir private Path folder;
  private final RecordingMetrics metrics = new RecordingMetrics();

  private TraceRecorder recorder(TraceOptions options) {
    return new TraceRecorder(TestEngines.gqa(1), options, metrics, () -> MICROS);
  }

  private TraceOptions options(long maxBytes, int maxFiles) {
    return new TraceOptions(folder.resolve("log"), maxBytes, maxFiles);
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(folder.resolve("log"))) {
      return files.filter(file -> !file.getFileName().toString().startsWith(".")).sorted().toList();
    }
  }

  private Path file() {
    return folder.resolve("log/ucm-trace-test-" + ProcessHandle.current().pid() + ".000001.log");
  }

  @Test
  void writesTheLineOfTheOriginal() throws IOException {
    try (TraceRecorder recorder = recorder(options(1 << 20, 2))) {
      recorder.record("cmpl-1", 10, 99, IDS);
      recorder.record("two\nlines", 3, 1, BlockIds.empty());
    }
    assertThat(files()).containsExactly(file());
    assertThat(Files.readAllLines(file()))
        .containsExactly(
            "UCMTraceMeta: type=standard, is_mla=false, vllm_hash_block_size=4",
            "timestamp: 1700000000.000042, request_id: cmpl-1, input_length: 10, output_length: 99,"
                + " ucm_block_ids: ['"
                + IDS.hex(0)
                + "', '"
                + IDS.hex(1)
                + "']",
            "timestamp: 1700000000.000042, request_id: two_lines, input_length: 3, output_length:"
                + " 1, ucm_block_ids: []");
  }

  @Test
  void writesWhatWaitsWhenAnInterruptedThreadClosesIt() throws IOException {
    TraceRecorder recorder = recorder(options(1 << 20, 2));
    for (int i = 0; i < 2000; i++) {
      recorder.record("cmpl-" + i, 10, 99, IDS);
    }
    Thread.currentThread().interrupt();
    recorder.close();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(Files.readAllLines(file())).hasSize(2001);
  }

  /** Daemons in two containers may have one number and one folder; here both are in one process. */
  @Test
  @Timeout(60)
  void twoLivingWritersOfOneNameHaveFilesOfTheirOwn() throws IOException {
    try (TraceRecorder one = recorder(options(1 << 20, 2));
        TraceRecorder other = recorder(options(1 << 20, 2))) {
      for (int i = 0; i < 20; i++) {
        one.record("one-" + i, 8, 1, IDS);
        other.record("other-" + i, 8, 1, IDS);
      }
      // Each takes a file when its thread first writes: neither may have ended by then.
      while (!Files.exists(folder.resolve("log")) || files().size() < 2) {
        Thread.onSpinWait();
      }
    }
    assertThat(files()).hasSize(2).contains(file());
    for (Path file : files()) {
      assertThat(Files.readAllLines(file)).hasSize(21);
    }
    // The next one goes on where one of them ended.
    try (TraceRecorder next = recorder(options(1 << 20, 2))) {
      next.record("next", 8, 1, IDS);
    }
    assertThat(files()).hasSize(2);
    assertThat(Files.readAllLines(file())).hasSize(22);
  }

  @Test
  void writesForTheOwnerAloneAndFollowsNoLink() throws IOException {
    try (TraceRecorder recorder = recorder(options(200, 3))) {
      for (int i = 0; i < 5; i++) {
        recorder.record("r" + i, 8, 1, IDS);
      }
    }
    assertThat(files()).hasSizeGreaterThan(1).allSatisfy(file -> assertMode(file, "rw-------"));
    assertMode(folder.resolve("log"), "rwx------");
    for (Path file : files()) {
      Files.delete(file);
    }
    Path other = Files.writeString(folder.resolve("other"), "mine");
    Files.createSymbolicLink(file(), other);
    try (TraceRecorder recorder = recorder(options(1 << 20, 3))) {
      recorder.record("r", 8, 1, IDS);
    }
    assertThat(other).hasContent("mine");
  }

  private static void assertMode(Path file, String mode) {
    assertThat(file)
        .extracting(
            each -> {
              try {
                return PosixFilePermissions.toString(Files.getPosixFilePermissions(each));
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            })
        .as("mode of %s", file)
        .isEqualTo(mode);
  }

  @Test
  void rotatesBySizeAndKeepsTheNewest() throws IOException {
    try (TraceRecorder recorder = recorder(options(600, 3))) {
      for (int i = 0; i < 20; i++) {
        recorder.record("r" + i, 8, 1, IDS);
      }
    }
    assertThat(files()).hasSize(3);
    for (Path file : files()) {
      boolean last = file.equals(files().getLast());
      assertThat(file.toString()).endsWith(last ? ".log" : ".log.gz");
      List<String> lines = lines(file);
      assertThat(String.join("\n", lines).length()).isLessThan(600);
      assertThat(lines.getFirst()).startsWith("UCMTraceMeta: ");
      assertThat(lines).hasSizeGreaterThan(1);
    }
    assertThat(files()).doesNotContain(file());
    assertThat(Files.readString(files().getLast())).contains("request_id: r19,").endsWith("]\n");
  }

  @Test
  void beginsBehindWhatIsCompressedAlready() throws IOException {
    try (TraceRecorder recorder = recorder(options(400, 9))) {
      for (int i = 0; i < 4; i++) {
        recorder.record("r" + i, 8, 1, IDS);
      }
    }
    Path plain = files().getLast();
    Path compressed = plain.resolveSibling(plain.getFileName() + ".gz");
    try (OutputStream to = new GZIPOutputStream(Files.newOutputStream(compressed))) {
      Files.copy(plain, to);
    }
    try (TraceRecorder recorder = recorder(options(400, 9))) {
      recorder.record("after", 8, 1, IDS);
    }
    assertThat(Files.readString(files().getLast())).contains("request_id: after,");
    assertThat(lines(compressed)).isEqualTo(lines(plain));
  }

  private static List<String> lines(Path file) throws IOException {
    try (InputStream bytes = Files.newInputStream(file);
        InputStream text = file.toString().endsWith(".gz") ? new GZIPInputStream(bytes) : bytes) {
      return new String(text.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
    }
  }

  @Test
  void aTornLineCostsNoOther() throws IOException {
    try (TraceRecorder recorder = recorder(options(1 << 20, 2))) {
      recorder.record("before", 8, 1, IDS);
    }
    Files.writeString(file(), Files.readString(file()) + "timestamp: 17");
    try (TraceRecorder recorder = recorder(options(1 << 20, 2))) {
      recorder.record("after", 8, 1, IDS);
    }
    assertThat(Files.readAllLines(file()))
        .hasSize(4)
        .anyMatch(line -> line.contains("request_id: before,"))
        .contains("timestamp: 17")
        .last()
        .asString()
        .startsWith("timestamp: 1700000000.000042, request_id: after,");
  }

  @Test
  void aFolderThatCannotBeWrittenIsCountedAndDisturbsNoCaller() throws IOException {
    Files.writeString(folder.resolve("log"), "a file where the folder should be");
    try (TraceRecorder recorder = recorder(options(1 << 20, 2))) {
      recorder.record("a", 8, 1, IDS);
      recorder.record("b", 8, 1, IDS);
    }
    assertThat(metrics.count("connector_dropped_traces")).isEqualTo(2);
    assertThat(metrics.count("connector_faults")).isEqualTo(2);
  }

  @Test
  void theSchedulerRecordsEachRequestOnceInAnyMode() throws IOException {
    for (String mode : List.of("use_lite", "use_layerwise")) {
      Path place = folder.resolve(mode);
      ConnectorSetup setup =
          TestEngines.setup(
                  TestEngines.gqa(1),
                  mode,
                  true,
                  "enable_record_traces",
                  true,
                  "persist_token_threshold",
                  5)
              .withTraces(new TraceOptions(place, 1 << 20, 1));
      try (SchedulerConnector scheduler = setup.scheduler()) {
        PromptRequest request = PromptRequest.of("a", tokens(0, 8), 7);
        scheduler.matchedTokens(request, 0);
        scheduler.matchedTokens(request, 4);
        scheduler.matchedTokens(PromptRequest.of("short", tokens(0, 4), 7), 0);
      }
      try (Stream<Path> files = Files.list(place)) {
        List<String> lines =
            Files.readAllLines(
                files.filter(file -> file.toString().endsWith(".log")).findFirst().orElseThrow());
        assertThat(lines).hasSize(3);
        assertThat(lines.get(1))
            .contains(", request_id: a, input_length: 8, output_length: 7, ", IDS.hex(1));
        assertThat(lines.get(2)).contains("request_id: short,", "ucm_block_ids: ['" + IDS.hex(0));
      }
    }
  }

  @Test
  void takesPlaceAndSizesFromTheEnvironmentOfTheOriginal() {
    assertThat(TraceOptions.of(Map.of())).isEqualTo(new TraceOptions(Path.of("log"), 5 << 20, 10));
    assertThat(
            TraceOptions.of(
                Map.of(
                    "UCM_LOG_PATH", "/var/x", "UCM_LOG_MAX_FILES", "3", "UCM_LOG_MAX_SIZE", "64")))
        .isEqualTo(new TraceOptions(Path.of("/var/x"), 64 << 20, 3));
    assertThat(TraceOptions.of(Map.of("UCM_LOG_MAX_FILES", "many", "UCM_LOG_MAX_SIZE", "-1")))
        .isEqualTo(new TraceOptions(Path.of("log"), 5 << 20, 10));
  }
}
