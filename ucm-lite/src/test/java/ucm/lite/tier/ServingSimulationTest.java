package ucm.lite.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.QuantileHistogram;
import ucm.lite.curve.Quantiles;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

class ServingSimulationTest {
  private static final KvModel MODEL = KvModels.named("qwen2.5-7b", "").orElseThrow();

  @Test
  void addsUpComputingAndLoadingByHand() throws InterruptedException {
    // 1000 tokens a second; 57,344 bytes a token, so 10,000 tokens a second from storage.
    ServingPlan plan = new ServingPlan(MODEL, 1, 1000, 0, 1e12, 1, 573.44e6, 0.01);
    long[] ids = {0, 1, 0, 2, 0, 3};
    long[] longer = {0, 1, 0, 2, 0, 4, 0, 5};
    List<TraceRequest> trace =
        List.of(
            new TraceRequest(0, "", 300, 1, 100, BlockIds.wrap(ids)),
            new TraceRequest(0, "", 400, 1, 100, BlockIds.wrap(longer)));
    TierPlan tiers =
        new TierPlan(
            1, 1, 0, 0, true, 0, 1000, true, WritePolicy.WRITE_THROUGH, Routing.ROUND_ROBIN);
    try (RecordedTrace recorded = Analyses.record(trace)) {
      ServingSimulation.Result result =
          ServingSimulation.run(recorded, tiers, TouchOrder.LEAF_LAST, plan);

      assertThat(result.tiers().storageTokens()).isEqualTo(200);
      assertThat(result.serving().computeSecondsWithout()).isEqualTo(0.7, within(1e-9));
      assertThat(result.serving().computeSecondsWith()).isEqualTo(0.5, within(1e-9));
      assertThat(result.serving().loadSeconds()).isEqualTo(0.03, within(1e-9));
      assertThat(result.serving().savedSeconds()).isEqualTo(0.17, within(1e-9));
      assertThat(result.serving().ttftWith().max()).isEqualTo(0.3, within(1e-9));
      assertThat(result.serving().ttftWithout().mean()).isEqualTo(0.35, within(1e-9));
    }
  }

  @Test
  void findsWhereLoadingBeginsToPay() {
    // Computing takes 1 ms a token, loading 0.1 ms and 10 ms once: it pays above 11.1 tokens.
    ServingPlan pays = new ServingPlan(MODEL, 1, 1000, 0, 1e12, 1, 573.44e6, 0.01);
    ServingPlan neverPays = new ServingPlan(MODEL, 1, 1000, 0, 1e12, 1, 57.344e6, 0.01);

    assertThat(pays.breakEvenTokens(1)).isEqualTo(12);
    assertThat(pays.breakEvenTokens(16)).isEqualTo(16);
    assertThat(neverPays.breakEvenTokens(16)).isEqualTo(-1);
  }

  @Test
  void derivesTheTimeFromOperationsWhenNoRateIsGiven() {
    ServingPlan plan = new ServingPlan(MODEL, 1, 0, 1e14, 1e12, 1, 1e9, 0);

    assertThat(plan.computeSeconds(0, 10_000))
        .isEqualTo(MODEL.prefillOperations(0, 10_000) / 1e14, within(1e-9));
    assertThat(plan.computeSeconds(0, 20_000)).isGreaterThan(2 * plan.computeSeconds(0, 10_000));
  }

  @Test
  void refusesPlansThatCannotBe() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ServingPlan(MODEL, 1, 0, 0, 1, 1, 1, 0));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ServingPlan(MODEL, 0, 1, 0, 1, 1, 1, 0));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ServingPlan(MODEL, 1, 1, 0, 0, 1, 1, 0));
  }

  @Test
  void findsQuantilesToOnePercent() {
    QuantileHistogram histogram = new QuantileHistogram(1e-6);
    for (int i = 1; i <= 10_000; i++) {
      histogram.add(i / 1000.0);
    }
    Quantiles quantiles = histogram.quantiles();

    assertThat(quantiles.count()).isEqualTo(10_000);
    assertThat(quantiles.mean()).isEqualTo(5.0005, within(1e-9));
    assertThat(quantiles.p50()).isEqualTo(5, within(0.05));
    assertThat(quantiles.p90()).isEqualTo(9, within(0.09));
    assertThat(quantiles.p99()).isEqualTo(9.9, within(0.1));
    assertThat(quantiles.max()).isEqualTo(10);
    assertThat(new QuantileHistogram(1).quantiles()).isEqualTo(new Quantiles(0, 0, 0, 0, 0, 0));
  }
}
