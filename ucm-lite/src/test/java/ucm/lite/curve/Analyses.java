package ucm.lite.curve;

import java.util.List;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.PolicySimulation;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

/** Shortcuts from a list of requests to results. */
public final class Analyses {
  private Analyses() {}

  public static TraceAnalysis analyze(List<TraceRequest> trace) {
    return analyze(trace, AnalysisOptions.DEFAULT);
  }

  public static TraceAnalysis analyze(List<TraceRequest> trace, AnalysisOptions options) {
    TraceAnalyzer analyzer = new TraceAnalyzer(options);
    trace.forEach(analyzer::request);
    return analyzer.finish();
  }

  public static RecordedTrace record(List<TraceRequest> trace) {
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    trace.forEach(analyzer::request);
    return analyzer.recorded();
  }

  /** The hits of one policy at each capacity. */
  public static List<CacheHits> simulate(
      RecordedTrace trace, SimulatedPolicy policy, TouchOrder order, long... capacities)
      throws InterruptedException {
    return new PolicySimulation(trace, order, 1)
        .run(List.of(policy), capacities).stream().map(PolicyHits::hits).toList();
  }
}
