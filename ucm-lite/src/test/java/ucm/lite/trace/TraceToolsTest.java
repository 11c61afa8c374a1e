package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.TraceSummary;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceEdits;
import ucm.lite.edit.TraceGenerator;
import ucm.lite.edit.TraceSorter;
import ucm.lite.record.TouchOrder;

class TraceToolsTest {
  @TempDir Path directory;

  @ParameterizedTest
  @EnumSource
  void readsBackWhatItWroteInEveryFormat(TraceFormat format) {
    List<TraceRequest> trace = generate(200, 3, format.defaultBlockTokens());

    CollectingVisitor read = readBack(format, trace);

    assertThat(read.requests).hasSameSizeAs(trace);
    for (int i = 0; i < trace.size(); i++) {
      TraceRequest expected = trace.get(i);
      TraceRequest found = read.requests.get(i);
      // Seconds are written in two formats.
      assertThat(found.timestampMillis()).isEqualTo(expected.timestampMillis(), within(1e-6));
      assertThat(found.inputTokens()).isEqualTo(expected.inputTokens());
      assertThat(found.outputTokens()).isEqualTo(expected.outputTokens());
      assertThat(found.blockTokens()).isEqualTo(format.defaultBlockTokens());
      assertThat(found.requestId())
          .isEqualTo(format == TraceFormat.MOONCAKE ? "" : expected.requestId());
      int blocks =
          format == TraceFormat.UCM
              ? expected.inputTokens() / expected.blockTokens()
              : expected.blockCount();
      assertThat(found.blockCount()).isEqualTo(blocks);
      for (int block = 0; block < blocks; block++) {
        assertThat(found.ids().high(block)).isEqualTo(expected.ids().high(block));
        assertThat(found.ids().low(block)).isEqualTo(expected.ids().low(block));
      }
    }
  }

  @Test
  void writesIdsOfUcmAsNumbersOfTheOrderFirstSeen() {
    StringBuilder out = new StringBuilder();
    TraceVisitor writer = TraceEdits.renumbered(new TraceWriter(TraceFormat.MOONCAKE, out));
    TraceRequest request =
        new TraceRequest(1.5, "secret", 40, 2, 16, BlockIds.wrap(new long[] {5, 6, 7, 8, 5, 6}));
    writer.request(request);

    assertThat(out.toString())
        .isEqualTo(
            "{\"timestamp\": 1.5, \"input_length\": 40, \"output_length\": 2, \"hash_ids\": [0, 1,"
                + " 0]}\n");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceWriter(TraceFormat.MOONCAKE, out).request(request))
        .withMessageContaining("renumber");
  }

  @Test
  void writesTimestampsWithoutExponent() {
    StringBuilder out = new StringBuilder();
    TraceWriter writer = new TraceWriter(TraceFormat.MOONCAKE, out);
    writer.request(new TraceRequest(12_345_678.25, "", 40, 2, 16, BlockIds.wrap(new long[0])));
    writer.request(new TraceRequest(0.0004, "", 40, 2, 16, BlockIds.wrap(new long[0])));

    assertThat(out.toString().lines())
        .extracting(line -> line.substring(0, line.indexOf(',')))
        .containsExactly("{\"timestamp\": 12345678.25", "{\"timestamp\": 0.00040");
  }

  @Test
  void anonymizesAllButWhatAnAnalysisNeeds() {
    List<TraceRequest> trace = RandomTraces.conversations(5, 200);
    CollectingVisitor anonymous = new CollectingVisitor();
    TraceVisitor edit = TraceEdits.anonymized(anonymous);
    trace.forEach(edit::request);

    assertThat(anonymous.requests.get(7).requestId()).isEqualTo("7");
    assertThat(anonymous.requests).allSatisfy(r -> assertThat(r.toString()).doesNotContain("r7"));
    assertThat(Analyses.analyze(anonymous.requests).summary())
        .isEqualTo(Analyses.analyze(trace).summary());
    for (long capacity = 0; capacity < 100; capacity++) {
      assertThat(Analyses.analyze(anonymous.requests).lru(TouchOrder.LEAF_LAST).at(capacity))
          .isEqualTo(Analyses.analyze(trace).lru(TouchOrder.LEAF_LAST).at(capacity));
    }
  }

  @Test
  void sortsInTheOrderOfTimeWhicheverInputIsFirst() {
    TraceRequest a = new TraceRequest(100, "a", 32, 1, 16, ids(1, 2));
    TraceRequest b = new TraceRequest(300, "b", 32, 1, 16, ids(1, 3));
    TraceRequest c = new TraceRequest(250, "c", 32, 1, 16, ids(1, 2));

    assertThat(sorted(b, a, c)).containsExactly("a 0 [1, 2]", "c 150 [1, 2]", "b 200 [1, 3]");
  }

  @Test
  void refusesBlocksOfTwoSizesInOneTrace() {
    try (TraceSorter sorter = new TraceSorter(true)) {
      sorter.request(new TraceRequest(0, "", 16, 1, 16, ids(1)));

      assertThatExceptionOfType(TraceException.class)
          .isThrownBy(() -> sorter.request(new TraceRequest(0, "", 64, 1, 64, ids(1))))
          .withMessageContaining("16 and of 64 tokens cannot be one trace");
    }
  }

  @Test
  void generatesTheSameTraceFromTheSameSeedAndAnotherFromAnother() {
    assertThat(lines(generate(500, 1, 512))).isEqualTo(lines(generate(500, 1, 512)));
    assertThat(lines(generate(500, 1, 512))).isNotEqualTo(lines(generate(500, 2, 512)));
  }

  @Test
  void generatesPromptsInTheOrderOfTimeWithPrefixesThatAreHashes() {
    List<TraceRequest> trace = generate(5000, 7, 128);

    double last = 0;
    Map<Long, Long> parent = new HashMap<>();
    for (TraceRequest request : trace) {
      assertThat(request.timestampMillis()).isGreaterThanOrEqualTo(last);
      last = request.timestampMillis();
      assertThat(request.blockCount()).isEqualTo((request.inputTokens() + 127) / 128);
      long before = -1;
      for (int i = 0; i < request.blockCount(); i++) {
        long id = request.ids().low(i);
        if (parent.getOrDefault(id, before) != before) {
          throw new AssertionError("block " + id + " follows two different prefixes");
        }
        parent.put(id, before);
        before = id;
      }
    }
    TraceSummary summary = Analyses.analyze(trace).summary();
    assertThat(summary.timeSpanMillis()).isBetween(5000 / 6.0 * 1000, 5000 * 1000.0);
    assertThat(summary.idealTokenHitRate()).isBetween(0.3, 0.99);
  }

  @Test
  void refusesOptionsThatCannotBe() {
    assertThatIllegalArgumentException().isThrownBy(() -> generate(0, 1, 16));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new GeneratorOptions(1, 1, 1, 16, 0, 0, 0, 1));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new GeneratorOptions(1, 1, 1, 16, -1, 1, 1, 1));
  }

  private CollectingVisitor readBack(TraceFormat format, List<TraceRequest> trace) {
    StringBuilder out = new StringBuilder();
    TraceWriter writer = new TraceWriter(format, out);
    trace.forEach(writer::request);
    assertThat(writer.written()).isEqualTo(trace.size());
    String file =
        TraceFiles.write(directory, "trace", out.toString().getBytes(StandardCharsets.UTF_8));
    CollectingVisitor visitor = new CollectingVisitor();
    TraceReadReport report = new TraceReader().read(List.of(file), visitor);
    assertThat(report.format()).isEqualTo(format);
    assertThat(report.problems()).isEmpty();
    return visitor;
  }

  private static List<String> sorted(TraceRequest... requests) {
    CollectingVisitor sorted = new CollectingVisitor();
    try (TraceSorter sorter = new TraceSorter(true)) {
      List.of(requests).forEach(sorter::request);
      sorter.writeTo(sorted);
    }
    return sorted.requests.stream()
        .map(
            r ->
                r.requestId()
                    + " "
                    + (long) r.timestampMillis()
                    + " "
                    + IntStream.range(0, r.blockCount()).mapToObj(r.ids()::low).toList())
        .toList();
  }

  private static List<TraceRequest> generate(int requests, long seed, int blockTokens) {
    CollectingVisitor made = new CollectingVisitor();
    new TraceGenerator(new GeneratorOptions(requests, seed, 3, blockTokens, 0.7, 0.1, 0.2, 4))
        .generate(made);
    return made.requests;
  }

  private static String lines(List<TraceRequest> trace) {
    StringBuilder out = new StringBuilder();
    trace.forEach(new TraceWriter(TraceFormat.MOONCAKE, out)::request);
    return out.toString();
  }

  private static BlockIds ids(long... low) {
    long[] packed = new long[2 * low.length];
    for (int i = 0; i < low.length; i++) {
      packed[2 * i + 1] = low[i];
    }
    return BlockIds.wrap(packed);
  }
}
