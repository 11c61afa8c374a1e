package ucm.cli.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import ucm.lite.curve.Sampling;
import ucm.lite.policy.CachePolicy;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.PolicySimulation;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.SampleScale;
import ucm.lite.tier.TraceSample;
import ucm.lite.trace.TraceVisitor;

/** Policies simulated on a sample of the blocks, for traces that are too large for all of them. */
final class MiniatureSimulation {

  private final TraceSample sample;

  /** Creates one. */
  MiniatureSimulation(Sampling sampling) {
    sample = new TraceSample(sampling);
  }

  /** A visitor that shows each request to another one, and collects the sample. */
  TraceVisitor beside(TraceVisitor other) {
    return other.andThen(sample);
  }

  /** Simulates after the whole trace; the hits are those estimated for the capacities. */
  List<PolicyHits> run(List<CachePolicy> policies, TouchOrder order, int threads, long[] capacities)
      throws InterruptedException {
    SampleScale scale = sample.scale();
    long[] scaled = Arrays.stream(capacities).map(scale::capacity).toArray();
    List<PolicyHits> estimates = new ArrayList<>();
    try (sample) {
      for (PolicyHits hits :
          new PolicySimulation(sample.recorded(), order, threads).run(policies, scaled)) {
        long capacity = capacities[estimates.size() % capacities.length];
        estimates.add(new PolicyHits(hits.policy(), scale.estimate(hits.hits(), capacity)));
      }
    }
    return estimates;
  }
}
