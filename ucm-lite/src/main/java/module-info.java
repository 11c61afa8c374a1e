/**
 * Lite mode: what a KV cache would be worth, from request traces alone.
 *
 * <p>{@link ucm.lite.trace.TraceReader} reads traces of LLM requests (Mooncake and Qwen-Bailian JSON
 * lines, UCM log lines; plain or gzip), {@link ucm.lite.curve.TraceAnalyzer} turns the requests into
 * totals and LRU hit curves for every capacity, exact or sampled. On a {@link
 * ucm.lite.record.RecordedTrace} run {@link ucm.lite.policy.PolicySimulation}, {@link ucm.lite.tier.TierSimulation} and
 * {@link ucm.lite.tier.ServingSimulation}. {@link ucm.lite.trace.TraceWriter}, {@link ucm.lite.edit.TraceEdits},
 * {@link ucm.lite.edit.TraceSorter} and {@link ucm.lite.edit.TraceGenerator} make traces. No store is opened
 * and no block is moved.
 */
@org.jspecify.annotations.NullMarked
module ucm.lite {
  requires com.carrotsearch.hppc;
  requires static org.jspecify;
  requires tools.jackson.core;
  requires tools.jackson.databind;
  requires transitive ucm.api;
  requires ucm.platform;

  exports ucm.lite.curve;
  exports ucm.lite.edit;
  exports ucm.lite.insight;
  exports ucm.lite.policy;
  exports ucm.lite.record;
  exports ucm.lite.tier;
  exports ucm.lite.trace;
}
