package ucm.lite;

import java.util.List;

/** Shortcuts from a list of requests to results. */
final class Analyses {
  private Analyses() {}

  static TraceAnalysis analyze(List<TraceRequest> trace) {
    return analyze(trace, AnalysisOptions.DEFAULT);
  }

  static TraceAnalysis analyze(List<TraceRequest> trace, AnalysisOptions options) {
    TraceAnalyzer analyzer = new TraceAnalyzer(options);
    trace.forEach(analyzer::request);
    return analyzer.finish();
  }

  static RecordedTrace record(List<TraceRequest> trace) {
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    trace.forEach(analyzer::request);
    return analyzer.recorded();
  }

  /** The hits of one policy at each capacity. */
  static List<CacheHits> simulate(
      RecordedTrace trace, CachePolicy policy, TouchOrder order, long... capacities)
      throws InterruptedException {
    return new PolicySimulation(trace, order, 1)
        .run(List.of(policy), capacities).stream().map(PolicyHits::hits).toList();
  }
}
