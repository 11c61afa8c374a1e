package ucm.lite.insight;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.GoldenTraceTest;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.Sampling;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceGenerator;
import ucm.lite.record.RecordedTrace;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;

class InsightsSamplerTest {

  @Test
  void isExactWhenEveryBlockIsInTheSample() throws InterruptedException {
    for (int seed = 0; seed < 10; seed++) {
      List<TraceRequest> trace = generated(seed, 300);
      SampledInsights sampled = sample(trace, Sampling.fixedRate(1));
      try (RecordedTrace recorded = Analyses.record(trace)) {
        TraceInsights exact = TraceInsights.of(recorded);
        assertThat(sampled.sampleRate()).isEqualTo(1);
        assertThat(sampled.blockGaps()).isEqualTo(exact.blockGaps());
        assertThat(sampled.blockLifetimes()).isEqualTo(exact.blockLifetimes());
        assertThat(sampled.blocksNeverReused()).isEqualTo(exact.blocksNeverReused());
        // The exact analysis goes on to the end of a prefix, where it may save a little less.
        assertThat(saved(sampled.hotPrefixes().getFirst()))
            .isGreaterThanOrEqualTo(saved(exact.hotPrefixes().getFirst()));
        assertThat((double) sampled.sessions())
            .isCloseTo((double) exact.sessions(), within(0.02 * exact.sessions()));
      }
    }
  }

  @Test
  void estimatesWhatALongTraceHoldsFromABoundedSample() throws InterruptedException {
    List<TraceRequest> trace = generated(7, 20_000);
    SampledInsights sampled = sample(trace, Sampling.fixedSize(2000));
    try (RecordedTrace recorded = Analyses.record(trace)) {
      TraceInsights exact = TraceInsights.of(recorded);
      assertThat(sampled.sampleRate()).isBetween(1e-3, 0.5);
      near(sampled.blockGaps(), exact.blockGaps());
      near(sampled.sessionGaps(), exact.sessionGaps());
      near(sampled.blockLifetimes(), exact.blockLifetimes());
      near(sampled.sessions(), exact.sessions());
      near(sampled.blocksNeverReused(), exact.blocksNeverReused());
    }
  }

  @Test
  void estimatesWhatTheRealTraceHolds() throws InterruptedException {
    String trace = GoldenTraceTest.conversationTrace().toString();
    InsightsSampler sampler = new InsightsSampler(Sampling.fixedSize(18_279));
    TraceAnalyzer all = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    new TraceReader()
        .read(
            List.of(trace),
            request -> {
              all.request(request);
              sampler.request(request);
            });
    try (RecordedTrace recorded = all.recorded()) {
      TraceInsights exact = TraceInsights.of(recorded);
      SampledInsights sampled = sampler.result();
      near(sampled.sessions(), exact.sessions());
      near(sampled.sessionGaps(), exact.sessionGaps());
      near(sampled.blockGaps(), exact.blockGaps());
      near(sampled.blockLifetimes(), exact.blockLifetimes());
      near(sampled.blocksNeverReused(), exact.blocksNeverReused());
      // The block that begins each prompt may be in the sample or not; the next are long prompts.
      assertThat(sampled.hotPrefixes())
          .anySatisfy(hot -> assertThat(hot.blocks()).isBetween(130, 145));
    }
  }

  private static long saved(HotPrefix prefix) {
    return (prefix.requests() - 1) * prefix.blocks();
  }

  private static void near(Quantiles estimate, Quantiles exact) {
    near(estimate.count(), exact.count());
    near(estimate.mean(), exact.mean());
    near(estimate.p90(), exact.p90());
  }

  private static void near(long estimate, long exact) {
    near((double) estimate, (double) exact);
  }

  private static void near(double estimate, double exact) {
    assertThat(estimate).isCloseTo(exact, within(0.2 * exact));
  }

  private static List<TraceRequest> generated(long seed, int requests) {
    List<TraceRequest> trace = new ArrayList<>();
    new TraceGenerator(new GeneratorOptions(requests, seed, 3, 512, 0.8, 0.05, 0.15, 8))
        .generate(trace::add);
    return trace;
  }

  private static SampledInsights sample(List<TraceRequest> trace, Sampling sampling) {
    InsightsSampler sampler = new InsightsSampler(sampling);
    trace.forEach(sampler::request);
    return sampler.result();
  }
}
