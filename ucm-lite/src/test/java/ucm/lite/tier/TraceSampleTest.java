package ucm.lite.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.CacheHits;
import ucm.lite.curve.GoldenTraceTest;
import ucm.lite.curve.Sampling;
import ucm.lite.curve.TraceSummary;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceGenerator;
import ucm.lite.insight.TraceInsights;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.PolicySimulation;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;

class TraceSampleTest {

  private static final List<SimulatedPolicy> POLICIES =
      List.of(
          SimulatedPolicy.FIFO,
          SimulatedPolicy.LRU,
          SimulatedPolicy.S3_FIFO,
          SimulatedPolicy.OPTIMAL);

  @Test
  void isTheTraceUntilThereAreMoreBlocksThanAllowed() throws InterruptedException {
    List<TraceRequest> trace = RandomTraces.conversations(3, 200);
    try (TraceSample sample = sample(trace, Sampling.fixedRate(1));
        RecordedTrace exact = Analyses.record(trace)) {
      assertThat(sample.whole()).isTrue();
      assertThat(sample.rate()).isEqualTo(1);
      TierPlan plan = plan(Routing.PREFIX, 4, 20, 100);
      TierResult expected = TierSimulation.run(exact, plan, TouchOrder.LEAF_LAST);
      assertThat(estimate(sample, plan)).isEqualTo(expected);
      assertThat(TraceInsights.of(sample.recorded())).isEqualTo(TraceInsights.of(exact));
    }
  }

  @Test
  void keepsTheBoundAndOneRateFromTheFirstRequestToTheLast() throws InterruptedException {
    List<TraceRequest> trace = RandomTraces.conversations(4, 3000);
    try (TraceSample bounded = sample(trace, Sampling.fixedSize(500))) {
      assertThat(bounded.whole()).isFalse();
      assertThat(bounded.recorded().uniqueBlocks()).isBetween(100, 500);
      // As if the rate had been known before.
      try (TraceSample known = sample(trace, Sampling.fixedRate(bounded.rate()))) {
        assertThat(known.scale()).isEqualTo(bounded.scale());
        assertThat(ids(known)).isEqualTo(ids(bounded));
        for (Routing routing : Routing.values()) {
          TierPlan plan = plan(routing, 200, 500, 2000);
          assertThat(estimate(bounded, plan)).isEqualTo(estimate(known, plan));
        }
      }
    }
  }

  @Test
  void staysWithinTheBoundWhateverIsAskedFor() {
    List<TraceRequest> trace = RandomTraces.conversations(4, 3000);
    try (TraceSample sample = sample(trace, new Sampling(0.5, 100))) {
      assertThat(sample.recorded().uniqueBlocks()).isBetween(1, 100);
      assertThat(sample.rate()).isLessThan(0.5);
      assertThat(sample.recorded().requests()).isLessThan(trace.size());
    }
  }

  @ParameterizedTest
  @EnumSource
  void standsForTheTiersOfTheWholeTrace(Routing routing) throws InterruptedException {
    List<TraceRequest> trace = new ArrayList<>();
    new TraceGenerator(new GeneratorOptions(10_000, 1, 3, 512, 0.8, 0.05, 0.15, 8))
        .generate(trace::add);
    TraceSummary summary = Analyses.analyze(trace).summary();
    TierPlan plan =
        plan(
            routing,
            summary.uniqueBlocks() / 40,
            summary.uniqueBlocks() / 10,
            summary.uniqueBlocks() / 2);
    try (RecordedTrace all = Analyses.record(trace);
        TraceSample few = sample(trace, Sampling.fixedSize((int) summary.uniqueBlocks() / 4))) {
      assertThat(few.recorded().references()).isLessThan(all.references() / 3);
      TierResult exact = TierSimulation.run(all, plan, TouchOrder.LEAF_LAST);
      TierResult estimate = estimate(few, plan);
      double share = 0.04 * summary.blockReferences();
      near(estimate.hbmBlocks(), exact.hbmBlocks(), share);
      near(estimate.dramBlocks(), exact.dramBlocks(), share);
      near(estimate.storageBlocks(), exact.storageBlocks(), share);
      near(estimate.storageWrites(), exact.storageWrites(), 0.1 * exact.storageWrites());
      assertThat(
              estimate.hbmBlocks()
                  + estimate.dramBlocks()
                  + estimate.storageBlocks()
                  + estimate.computedBlocks())
          .isEqualTo(summary.blockReferences());
    }
  }

  /** Of a tenth of the real trace; docs/traces.md has the errors of other rates. */
  @ParameterizedTest
  @EnumSource
  void standsForTheTiersOfTheRealTrace(Routing routing) throws InterruptedException {
    Path trace = GoldenTraceTest.conversationTrace();
    try (TraceSample all = new TraceSample(Sampling.fixedRate(1));
        TraceSample few = new TraceSample(Sampling.fixedRate(0.1))) {
      new TraceReader()
          .read(
              List.of(trace.toString()),
              request -> {
                all.request(request);
                few.request(request);
              });
      TierPlan plan = plan(routing, 745, 7450, 74_505);
      TierResult exact = TierSimulation.run(all.recorded(), plan, TouchOrder.LEAF_LAST);
      TierResult estimate = estimate(few, plan);
      double points = 0.01 * all.recorded().references();
      near(estimate.hbmBlocks(), exact.hbmBlocks(), 2 * points);
      near(estimate.dramBlocks(), exact.dramBlocks(), 2 * points);
      near(estimate.storageBlocks(), exact.storageBlocks(), 2 * points);
      near(estimate.computedBlocks(), exact.computedBlocks(), points);
      near(estimate.storageWrites(), exact.storageWrites(), 0.02 * exact.storageWrites());
    }
  }

  @Test
  void standsForTheFullSimulationOfEveryPolicy() throws InterruptedException {
    List<TraceRequest> trace = RandomTraces.conversations(11, 20_000);
    TraceSummary summary = Analyses.analyze(trace).summary();
    try (RecordedTrace all = Analyses.record(trace);
        TraceSample few = sample(trace, Sampling.fixedRate(0.2))) {
      assertThat(few.recorded().references()).isLessThan(all.references() / 3);
      SampleScale scale = few.scale();
      long[] capacities = new long[9];
      Arrays.setAll(capacities, i -> summary.uniqueBlocks() * (i + 1) / 10);
      long[] scaled = Arrays.stream(capacities).map(scale::capacity).toArray();
      List<PolicyHits> exact =
          new PolicySimulation(all, TouchOrder.LEAF_LAST, 2).run(POLICIES, capacities);
      List<PolicyHits> estimated =
          new PolicySimulation(few.recorded(), TouchOrder.LEAF_LAST, 2).run(POLICIES, scaled);
      double error = 0;
      for (int i = 0; i < exact.size(); i++) {
        CacheHits hits = scale.estimate(estimated.get(i).hits(), capacities[i % capacities.length]);
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
    SampleScale scale = new SampleScale(0.01, 1000, 20, 10_000, 200);
    assertThat(scale.estimate(new CacheHits(0, 0, 0), 0).hitBlocks()).isZero();
    assertThat(scale.capacity(0)).isZero();
    assertThat(scale.capacity(1)).isEqualTo(1);
    assertThat(scale.estimate(new CacheHits(1, 900, 9000), 9))
        .isEqualTo(new CacheHits(9, 1000, 10_000));
    TierResult nothing = new TierResult(0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 1);
    TierResult none = scale.estimate(nothing, plan(Routing.SESSION, 0, 0, 0));
    assertThat(none.computedBlocks()).isEqualTo(1000);
    assertThat(none.hitTokens()).isZero();
  }

  @Test
  void takesWhatAHotBlockCountsTooMuchFromTheNearestTierFirst() {
    // 30 sampled references stand for 3000, of which there are 1000.
    SampleScale scale = new SampleScale(0.01, 1000, 30, 10_000, 300);
    TierResult small = new TierResult(15, 8, 0, 3, 4, 150, 80, 0, 30, 2, 0, 7, 1.5);
    assertThat(scale.estimate(small, plan(Routing.SESSION, 9, 9, 9)))
        .isEqualTo(new TierResult(0, 300, 0, 300, 400, 0, 3000, 0, 3000, 200, 0, 700, 1.5));
    // And too few in the nearest there is.
    SampleScale lacking = new SampleScale(0.01, 1000, 8, 10_000, 80);
    TierResult few = new TierResult(0, 2, 0, 1, 5, 0, 20, 0, 10, 0, 0, 0, 1);
    assertThat(lacking.estimate(few, plan(Routing.SESSION, 0, 9, 9)))
        .isEqualTo(new TierResult(0, 400, 0, 100, 500, 0, 4000, 0, 1000, 0, 0, 0, 1));
  }

  private static void near(long estimate, long exact, double off) {
    assertThat((double) estimate).isCloseTo((double) exact, within(off));
  }

  private static TraceSample sample(List<TraceRequest> trace, Sampling sampling) {
    TraceSample sample = new TraceSample(sampling);
    trace.forEach(sample::request);
    return sample;
  }

  private static TierResult estimate(TraceSample sample, TierPlan plan)
      throws InterruptedException {
    SampleScale scale = sample.scale();
    return scale.estimate(
        TierSimulation.run(sample.recorded(), scale.plan(plan), TouchOrder.LEAF_LAST), plan);
  }

  private static Set<String> ids(TraceSample sample) {
    Set<String> ids = new HashSet<>();
    for (int block = 0; block < sample.recorded().uniqueBlocks(); block++) {
      ids.add(sample.recorded().idHigh(block) + ":" + sample.recorded().idLow(block));
    }
    return ids;
  }

  private static TierPlan plan(Routing routing, long hbm, long dram, long storage) {
    return new TierPlan(
        2, 2, hbm, dram, false, 0, storage, true, WritePolicy.WRITE_THROUGH, routing);
  }
}
