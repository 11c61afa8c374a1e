package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceRequest;

class ShardsSamplerTest {
  private static final List<TraceRequest> TRACE = RandomTraces.conversations(99, 20_000);

  @Test
  void isTheExactCurveWhenEveryBlockIsSampled() {
    for (int seed = 0; seed < 200; seed++) {
      List<TraceRequest> trace =
          seed % 2 == 0 ? RandomTraces.chaotic(seed) : RandomTraces.conversations(seed, 30);
      TraceAnalysis analysis =
          Analyses.analyze(trace, AnalysisOptions.DEFAULT.withSampling(Sampling.fixedRate(1)));
      for (TouchOrder order : TouchOrder.values()) {
        LruCurve sampled = analysis.sampledCurves().orElseThrow().of(order);
        for (int capacity = 0; capacity < 200; capacity++) {
          assertThat(sampled.at(capacity)).isEqualTo(analysis.lru(order).at(capacity));
        }
      }
    }
  }

  @Test
  void comesNearerToTheExactCurveAsTheRateGrows() {
    double tenth = meanError(Sampling.fixedRate(0.1));
    double half = meanError(Sampling.fixedRate(0.5));

    assertThat(tenth).isBetween(1e-9, 0.03);
    assertThat(half).isLessThan(0.01).isLessThan(tenth);
  }

  @Test
  void comesNearerToTheExactCurveAsTheSampleGrows() {
    double small = meanError(Sampling.fixedSize(500));
    double large = meanError(Sampling.fixedSize(16_000));

    assertThat(small).isBetween(1e-9, 0.05);
    assertThat(large).isLessThan(0.01).isLessThan(small);
  }

  @Test
  void keepsNoMoreBlocksThanAllowedAndLowersTheRate() {
    ShardsSampler sampler = new ShardsSampler(Sampling.fixedSize(100));
    TRACE.forEach(sampler::accept);

    long unique = Analyses.analyze(TRACE).summary().uniqueBlocks();
    assertThat(sampler.rate()).isBetween(50.0 / unique, 200.0 / unique);
    assertThat(sampler.uniqueBlocks() * sampler.rate()).isBetween(90.0, 100.001);
  }

  @Test
  void estimatesTotalsOfATraceThatIsTooLargeForTheExactAnalysis() {
    TraceAnalysis whole = Analyses.analyze(TRACE);
    TraceAnalysis bounded =
        Analyses.analyze(
            TRACE,
            AnalysisOptions.DEFAULT
                .withMaxUniqueBlocks(1000)
                .withSampling(new Sampling(0.2, 1 << 16)));

    assertThat(bounded.exact()).isFalse();
    assertThat(bounded.exactCurves()).isEmpty();
    assertThat(bounded.lru(TouchOrder.LEAF_LAST).sampleRate()).isBetween(0.19, 0.21);
    assertThat(bounded.summary().blockReferences()).isEqualTo(whole.summary().blockReferences());
    assertThat((double) bounded.summary().uniqueBlocks() / whole.summary().uniqueBlocks())
        .isBetween(0.9, 1.1);
    assertThat(bounded.summary().idealTokenHitRate())
        .isBetween(
            whole.summary().idealTokenHitRate() - 0.02, whole.summary().idealTokenHitRate() + 0.02);
  }

  @Test
  void refusesRatesAndSizesThatCannotBe() {
    assertThatIllegalArgumentException().isThrownBy(() -> Sampling.fixedRate(0));
    assertThatIllegalArgumentException().isThrownBy(() -> Sampling.fixedRate(1.1));
    assertThatIllegalArgumentException().isThrownBy(() -> Sampling.fixedRate(Double.NaN));
    assertThatIllegalArgumentException().isThrownBy(() -> Sampling.fixedSize(0));
  }

  /** The mean difference of the token hit rates from 1% to 100% of the blocks, over five hashes. */
  private static double meanError(Sampling sampling) {
    double error = 0;
    for (int seed = 0; seed < 5; seed++) {
      TraceAnalysis analysis =
          Analyses.analyze(renamed(seed), AnalysisOptions.DEFAULT.withSampling(sampling));
      TraceSummary summary = analysis.summary();
      for (TouchOrder order : TouchOrder.values()) {
        LruCurve sampled = analysis.sampledCurves().orElseThrow().of(order);
        for (int percent = 1; percent <= 100; percent++) {
          long capacity = percent * summary.uniqueBlocks() / 100;
          error +=
              Math.abs(
                  summary.tokenHitRate(sampled.hitTokens(capacity))
                      - summary.tokenHitRate(analysis.lru(order).hitTokens(capacity)));
        }
      }
    }
    return error / 1000;
  }

  /** The trace with other ids, so that other blocks are sampled. */
  private static List<TraceRequest> renamed(long seed) {
    List<TraceRequest> renamed = new ArrayList<>();
    for (TraceRequest request : TRACE) {
      long[] ids = new long[2 * request.blockCount()];
      for (int i = 0; i < request.blockCount(); i++) {
        ids[2 * i] = request.ids().high(i);
        ids[2 * i + 1] = request.ids().low(i) + seed * 1_000_003;
      }
      renamed.add(
          new TraceRequest(
              request.timestampMillis(),
              request.requestId(),
              request.inputTokens(),
              request.outputTokens(),
              request.blockTokens(),
              BlockIds.wrap(ids)));
    }
    return renamed;
  }
}
