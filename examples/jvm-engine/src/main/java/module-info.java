/** An inference engine in Java whose KV cache is kept by UCM. */
@org.jspecify.annotations.NullMarked
module ucm.example.engine {
  requires static org.jspecify;
  requires ucm.pipeline;
}
