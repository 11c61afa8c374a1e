package ucm.lite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SampledRequestsTest {

  private static final List<CachePolicy> POLICIES =
      List.of(CachePolicy.FIFO, CachePolicy.LRU, CachePolicy.ARC, CachePolicy.OPTIMAL);

  @Test
  void showsTheWholeTraceAtRateOne() {
    List<TraceRequest> trace = RandomTraces.conversations(3, 200);
    List<TraceRequest> seen = new ArrayList<>();
    SampledRequests sample = new SampledRequests(1, seen::add);
    trace.forEach(sample::request);
    assertThat(seen).hasSameSizeAs(trace);
    for (int i = 0; i < trace.size(); i++) {
      assertThat(seen.get(i).packedBlockIds()).isEqualTo(trace.get(i).packedBlockIds());
    }
    CacheHits hits = new CacheHits(7, 3, 20);
    assertThat(sample.estimate(hits, 7)).isEqualTo(hits);
    assertThat(sample.scaledCapacity(7)).isEqualTo(7);
  }

  @Test
  void standsForTheFullSimulationOfEveryPolicy() throws InterruptedException {
    List<TraceRequest> trace = RandomTraces.conversations(11, 20_000);
    TraceAnalyzer full = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    TraceAnalyzer small = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    SampledRequests sample = new SampledRequests(0.2, small);
    trace.forEach(full::request);
    trace.forEach(sample::request);
    TraceSummary summary = full.finish().summary();
    long[] capacities = new long[9];
    long[] scaled = new long[9];
    for (int i = 0; i < capacities.length; i++) {
      capacities[i] = summary.uniqueBlocks() * (i + 1) / 10;
      scaled[i] = sample.scaledCapacity(capacities[i]);
    }
    try (RecordedTrace all = full.recorded();
        RecordedTrace few = small.recorded()) {
      assertThat(few.references()).isLessThan(all.references() / 3);
      List<PolicyHits> exact =
          new PolicySimulation(all, TouchOrder.LEAF_LAST, 2).run(POLICIES, capacities);
      List<PolicyHits> estimated =
          new PolicySimulation(few, TouchOrder.LEAF_LAST, 2).run(POLICIES, scaled);
      double error = 0;
      for (int i = 0; i < exact.size(); i++) {
        CacheHits hits =
            sample.estimate(estimated.get(i).hits(), capacities[i % capacities.length]);
        error +=
            Math.abs(
                summary.tokenHitRate(hits.hitTokens())
                    - summary.tokenHitRate(exact.get(i).hits().hitTokens()));
      }
      assertThat(error / exact.size()).as("mean error").isLessThan(0.03);
    }
  }

  @Test
  void hitsNothingWithoutRoomAndNoMoreThanThereIs() {
    List<TraceRequest> trace = RandomTraces.conversations(3, 50);
    SampledRequests sample = new SampledRequests(0.01, request -> {});
    trace.forEach(sample::request);
    long references = trace.stream().mapToLong(TraceRequest::blockCount).sum();
    assertThat(sample.estimate(new CacheHits(0, 0, 0), 0).hitBlocks()).isZero();
    assertThat(sample.scaledCapacity(0)).isZero();
    assertThat(sample.scaledCapacity(1)).isEqualTo(1);
    assertThat(sample.estimate(new CacheHits(1, references, references), 9).hitBlocks())
        .isEqualTo(references);
  }

  @Test
  void refusesRatesThatCannotBe() {
    assertThatThrownBy(() -> new SampledRequests(0, request -> {}))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
