/**
 * Lite mode: what a KV cache would be worth, from request traces alone.
 *
 * <p>{@link ucm.lite.TraceReader} reads traces of LLM requests (Mooncake and Qwen-Bailian JSON
 * lines, UCM log lines; plain or gzip), {@link ucm.lite.TraceAnalyzer} turns the requests into
 * totals, into the exact LRU hit curve for every capacity, and into FIFO hits at chosen capacities.
 * No store is opened and no block is moved.
 */
@org.jspecify.annotations.NullMarked
module ucm.lite {
  requires com.carrotsearch.hppc;
  requires static org.jspecify;
  requires tools.jackson.core;
  requires tools.jackson.databind;

  exports ucm.lite;
}
