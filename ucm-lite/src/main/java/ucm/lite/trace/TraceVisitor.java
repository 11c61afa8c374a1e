package ucm.lite.trace;

/**
 * Receives what a {@link TraceReader} reads, in the order of the inputs, on the thread that reads.
 *
 * <p>A visitor may throw: the reading ends, the input is closed, and the exception reaches the
 * caller unchanged. A visitor may keep what it is given.
 */
@FunctionalInterface
public interface TraceVisitor {
  /** Receives one request. */
  void request(TraceRequest request);

  /**
   * Is told at the start, about once a mebibyte, and at the end of each input, how many bytes of all
   * inputs, before decompression, have been read; the total is -1 when not known.
   */
  default void progress(long bytesRead, long bytesTotal) {}

  /** Shows all to this visitor first, and then to another one. */
  default TraceVisitor andThen(TraceVisitor next) {
    TraceVisitor first = this;
    return new TraceVisitor() {
      @Override
      public void request(TraceRequest request) {
        first.request(request);
        next.request(request);
      }

      @Override
      public void progress(long bytesRead, long bytesTotal) {
        first.progress(bytesRead, bytesTotal);
        next.progress(bytesRead, bytesTotal);
      }
    };
  }
}
