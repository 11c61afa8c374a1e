package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceRequest;

class OnlineCurveTest {

  @Test
  void isTheExactCurveWhileTheSampleHoldsAllBlocks() {
    for (int seed = 0; seed < 50; seed++) {
      List<TraceRequest> trace = RandomTraces.conversations(seed, 60);
      TraceSummary summary = Analyses.analyze(trace).summary();
      LruCurve exact = Analyses.analyze(trace).lru(TouchOrder.ROOT_LAST);
      OnlineCurve.Snapshot online = of(trace, 1 << 14);
      assertThat(online.requests()).isEqualTo(summary.requests());
      assertThat(online.uniqueBlocks()).isEqualTo(summary.uniqueBlocks());
      for (int capacity = 0; capacity <= Math.min(200, summary.uniqueBlocks()); capacity++) {
        assertThat(online.hitRate(capacity))
            .as("capacity %d of seed %d", capacity, seed)
            .isEqualTo(summary.tokenHitRate(exact.hitTokens(capacity)), within(1e-9));
      }
    }
  }

  @Test
  void staysNearTheExactCurveWithASmallSample() {
    List<TraceRequest> trace = RandomTraces.conversations(3, 4000);
    TraceAnalysis analysis = Analyses.analyze(trace);
    TraceSummary summary = analysis.summary();
    OnlineCurve.Snapshot online = of(trace, 1024);
    assertThat(online.curve().sampleRate()).isLessThan(0.5);
    CurveError error =
        CurveError.between(analysis.lru(TouchOrder.ROOT_LAST), online.curve(), summary);
    assertThat(error.mean()).isLessThan(0.05);
  }

  @Test
  void aSnapshotDoesNotChange() {
    List<TraceRequest> trace = RandomTraces.conversations(5, 60);
    OnlineCurve online = new OnlineCurve(1024);
    OnlineCurve.Snapshot before = online.snapshot();
    trace.forEach(online::add);
    assertThat(before.requests()).isZero();
    assertThat(before.hitRate(LruCurve.UNBOUNDED)).isZero();
    assertThat(online.snapshot().hitRate(LruCurve.UNBOUNDED)).isPositive();
  }

  private static OnlineCurve.Snapshot of(List<TraceRequest> trace, int sampledBlocks) {
    OnlineCurve online = new OnlineCurve(sampledBlocks);
    trace.forEach(online::add);
    return online.snapshot();
  }
}
