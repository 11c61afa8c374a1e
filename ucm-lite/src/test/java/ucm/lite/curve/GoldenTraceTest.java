package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceReadReport;
import ucm.lite.trace.TraceReader;

/** Exact integers: those of the conversation trace beside the project. */
public class GoldenTraceTest {
  @Test
  void holdsTheGoldenNumbersOfTheConversationTrace() throws IOException, InterruptedException {
    Path trace = conversationTrace();
    TraceAnalysis analysis =
        checkGolden(trace, trace.resolveSibling("conversation_lru_golden.csv"));

    TraceSummary summary = analysis.summary();
    assertThat(summary.requests()).isEqualTo(12_031);
    assertThat(summary.blockReferences()).isEqualTo(288_500);
    assertThat(summary.uniqueBlocks()).isEqualTo(182_790);
    assertThat(summary.inputTokens()).isEqualTo(144_793_823);
    assertThat(summary.outputTokens()).isEqualTo(4_122_048);
    assertThat(summary.blockTokens()).isEqualTo(512);
    assertThat((long) summary.meanInputTokens()).isEqualTo(12_035);
    assertThat(Math.round(summary.meanOutputTokens())).isEqualTo(343);
    assertThat(summary.idealHitBlocks()).isEqualTo(105_710);
    assertThat(summary.idealHitTokens()).isEqualTo(54_098_411);
    assertThat(summary.timeSpanMillis()).isEqualTo(3_536_999);
    // As published: 50 million tokens of capacity reach 99% of the ideal hit rate.
    long fiftyMillion = 50_000_000 / summary.blockTokens();
    assertThat((double) analysis.lru(TouchOrder.LEAF_LAST).hitTokens(fiftyMillion))
        .isGreaterThanOrEqualTo(0.99 * summary.idealHitTokens());
  }

  private static TraceAnalysis checkGolden(Path trace, Path golden)
      throws IOException, InterruptedException {
    List<String[]> rows =
        Files.readAllLines(golden).stream().skip(1).map(row -> row.split(",", -1)).toList();
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    TraceReadReport report = new TraceReader().read(List.of(trace.toString()), analyzer);
    TraceAnalysis analysis = analyzer.finish();

    assertThat(report.problems()).isEmpty();
    assertThat(rows).hasSizeGreaterThan(20);
    try (RecordedTrace recorded = analyzer.recorded()) {
      for (String[] row : rows) {
        long capacity = row[2].equals("unbounded") ? LruCurve.UNBOUNDED : Long.parseLong(row[2]);
        CacheHits expected =
            new CacheHits(capacity, Long.parseLong(row[3]), Long.parseLong(row[4]));
        TouchOrder order =
            row[1].equals(TouchOrder.LEAF_LAST.key()) ? TouchOrder.LEAF_LAST : TouchOrder.ROOT_LAST;
        SimulatedPolicy policy = SimulatedPolicy.of(row[0]).orElseThrow();
        assertThat(Analyses.simulate(recorded, policy, order, capacity))
            .as(String.join(",", row))
            .containsExactly(expected);
        if (policy == SimulatedPolicy.LRU) {
          assertThat(analysis.lru(order).at(capacity))
              .as(String.join(",", row))
              .isEqualTo(expected);
        }
      }
    }
    return analysis;
  }

  /** The published trace in {@code shared/data} beside the project; without it a test is skipped. */
  public static Path conversationTrace() {
    Path folder = Path.of("").toAbsolutePath();
    while (folder != null && !Files.isDirectory(folder.resolve("shared/data"))) {
      folder = folder.getParent();
    }
    Path trace =
        (folder == null ? Path.of("") : folder).resolve("shared/data/conversation_trace.jsonl");
    assumeTrue(
        Files.isRegularFile(trace),
        "the conversation trace is not beside the project (shared/data)");
    return trace;
  }
}
