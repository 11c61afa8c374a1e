package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;

class TraceAnalyzerTest {
  @Test
  void countsATraceThatCanBeCheckedByHand() {
    TraceAnalyzer analyzer = new TraceAnalyzer();
    analyzer.request(request(2000, 40, 1, 2, 3)); // nothing is known
    analyzer.request(request(1000, 25, 1, 2, 4)); // 1 and 2 hit: min(2 * 10, 25) tokens
    analyzer.request(request(5000, 19, 1, 2)); // both hit: min(2 * 10, 19) tokens
    TraceAnalysis analysis = analyzer.finish();

    assertThat(analysis.summary())
        .isEqualTo(new TraceSummary(3, 84, 21, 10, 8, 4, 4, 39, 1000, 5000));
    // Touched 1, 2, 3: distances 3 and 2. Then 1, 2, 4: again 3 and 2.
    assertThat(analysis.lru(TouchOrder.LEAF_LAST).at(2)).isEqualTo(new CacheHits(2, 0, 0));
    assertThat(analysis.lru(TouchOrder.LEAF_LAST).at(3)).isEqualTo(new CacheHits(3, 4, 39));
    // Touched 3, 2, 1: distances 1 and 2. Then 4, 2, 1: again.
    assertThat(analysis.lru(TouchOrder.ROOT_LAST).at(1)).isEqualTo(new CacheHits(1, 2, 20));
    assertThat(analysis.lru(TouchOrder.ROOT_LAST).at(2)).isEqualTo(new CacheHits(2, 4, 39));
  }

  @Test
  void isAllZeroWithoutRequests() {
    TraceAnalysis analysis = new TraceAnalyzer().finish();

    assertThat(analysis.summary()).isEqualTo(new TraceSummary(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    assertThat(analysis.summary().meanInputTokens()).isZero();
    assertThat(analysis.summary().idealTokenHitRate()).isZero();
    assertThat(analysis.lru(TouchOrder.LEAF_LAST).stepCount()).isZero();
    assertThat(analysis.lru(TouchOrder.ROOT_LAST).at(LruCurve.UNBOUNDED).hitBlocks()).isZero();
  }

  @Test
  void canBeAskedAgainAfterMoreRequests() {
    TraceAnalyzer analyzer = new TraceAnalyzer();
    analyzer.request(request(0, 10, 1));
    TraceAnalysis early = analyzer.finish();
    analyzer.request(request(0, 10, 1));

    assertThat(early.lru(TouchOrder.LEAF_LAST).at(1).hitBlocks()).isZero();
    assertThat(analyzer.finish().lru(TouchOrder.LEAF_LAST).at(1).hitBlocks()).isEqualTo(1);
    assertThat(early.lru(TouchOrder.LEAF_LAST).at(1).hitBlocks()).isZero();
  }

  @Test
  void refusesBlocksOfAnotherSize() {
    TraceAnalyzer analyzer = new TraceAnalyzer();
    analyzer.request(request(0, 10, 1));

    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> analyzer.request(new TraceRequest(0, "", 5, 0, 16, BlockIds.wrap(new long[2]))))
        .withMessageContaining("16 tokens a block after ones with 10");
  }

  @Test
  void refusesNegativeCapacities() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceAnalyzer().finish().lru(TouchOrder.LEAF_LAST).hitTokens(-1));
  }

  @Test
  void refusesRequestsThatCannotBe() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRequest(Double.NaN, "", 0, 0, 1, BlockIds.empty()));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRequest(-1, "", 0, 0, 1, BlockIds.empty()));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRequest(0, "", -1, 0, 1, BlockIds.empty()));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRequest(0, "", 0, -1, 1, BlockIds.empty()));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRequest(0, "", 0, 0, 0, BlockIds.empty()));
  }

  @Test
  void refusesOptionsOutOfRange() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceReader(-1, 64, 0, System.in))
        .withMessage("maxBadLines is -1, must be between 0 and 2147483647");
    assertThatIllegalArgumentException().isThrownBy(() -> new TraceReader(0, 63, 0, System.in));
    assertThatIllegalArgumentException().isThrownBy(() -> new TraceReader(0, 64, -1, System.in));
  }

  private static TraceRequest request(double timestampMillis, int inputTokens, long... ids) {
    long[] packed = new long[2 * ids.length];
    for (int i = 0; i < ids.length; i++) {
      packed[2 * i + 1] = ids[i];
    }
    return new TraceRequest(timestampMillis, "", inputTokens, 7, 10, BlockIds.wrap(packed));
  }
}
