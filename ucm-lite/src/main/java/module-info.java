/**
 * Lite mode: what a KV cache would be worth, from request traces alone.
 *
 * <p>{@link ucm.lite.TraceReader} reads traces of LLM requests (Mooncake and Qwen-Bailian JSON
 * lines, UCM log lines; plain or gzip), {@link ucm.lite.TraceAnalyzer} turns the requests into
 * totals and LRU hit curves for every capacity, exact or sampled. On a {@link
 * ucm.lite.RecordedTrace} run {@link ucm.lite.PolicySimulation}, {@link ucm.lite.TierSimulation} and
 * {@link ucm.lite.ServingSimulation}. {@link ucm.lite.TraceWriter}, {@link ucm.lite.TraceEdits},
 * {@link ucm.lite.TraceMerge} and {@link ucm.lite.TraceGenerator} make traces. No store is opened
 * and no block is moved.
 */
@org.jspecify.annotations.NullMarked
module ucm.lite {
  requires com.carrotsearch.hppc;
  requires static org.jspecify;
  requires tools.jackson.core;
  requires tools.jackson.databind;

  exports ucm.lite;
}
