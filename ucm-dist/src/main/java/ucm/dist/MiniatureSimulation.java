package ucm.dist;

import java.util.ArrayList;
import java.util.List;
import ucm.lite.AnalysisOptions;
import ucm.lite.CachePolicy;
import ucm.lite.PolicyHits;
import ucm.lite.PolicySimulation;
import ucm.lite.RecordedTrace;
import ucm.lite.SampledRequests;
import ucm.lite.TouchOrder;
import ucm.lite.TraceAnalyzer;
import ucm.lite.TraceVisitor;

/** Policies simulated on a sample of the blocks, for traces that are too large for all of them. */
final class MiniatureSimulation {

  private final TraceAnalyzer small;
  private final SampledRequests sample;

  /**
   * Creates one.
   *
   * @param rate share of the blocks, above 0 and at most 1
   * @param maxBlocks most distinct blocks of the sample
   */
  MiniatureSimulation(double rate, int maxBlocks) {
    small =
        new TraceAnalyzer(AnalysisOptions.DEFAULT.withMaxUniqueBlocks(maxBlocks).withRecording());
    sample = new SampledRequests(rate, small);
  }

  /** A visitor that shows each request to another one, and collects the sample. */
  TraceVisitor beside(TraceVisitor other) {
    return request -> {
      other.request(request);
      sample.request(request);
    };
  }

  /** Simulates after the whole trace; the hits are those estimated for the capacities. */
  List<PolicyHits> run(List<CachePolicy> policies, TouchOrder order, int threads, long[] capacities)
      throws InterruptedException {
    long[] scaled = new long[capacities.length];
    for (int c = 0; c < scaled.length; c++) {
      scaled[c] = sample.scaledCapacity(capacities[c]);
    }
    List<PolicyHits> estimates = new ArrayList<>();
    try (RecordedTrace trace = small.recorded()) {
      for (PolicyHits hits : new PolicySimulation(trace, order, threads).run(policies, scaled)) {
        long capacity = capacities[estimates.size() % capacities.length];
        estimates.add(new PolicyHits(hits.policy(), sample.estimate(hits.hits(), capacity)));
      }
    }
    return estimates;
  }
}
