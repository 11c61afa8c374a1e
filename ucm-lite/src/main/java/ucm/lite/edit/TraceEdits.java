package ucm.lite.edit;

import ucm.api.BlockIds;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.platform.table.BlockTable;

/** Changes requests on their way from a reader to a writer. */
public final class TraceEdits {
  private TraceEdits() {}

  /**
   * Replaces block ids by 0, 1, 2, ... in the order first seen. Memory: 27 to 46 bytes a distinct
   * block.
   */
  public static TraceVisitor renumbered(TraceVisitor next) {
    BlockTable index = new BlockTable(1 << 10);
    return request -> next.request(numbered(request, request.requestId(), index));
  }

  /**
   * Takes out what could identify anyone but times: block ids become 0, 1, 2, ... in the order
   * first seen, request ids the place of the request. Lengths stay.
   */
  public static TraceVisitor anonymized(TraceVisitor next) {
    return new TraceVisitor() {
      private final BlockTable index = new BlockTable(1 << 10);
      private long number;

      @Override
      public void request(TraceRequest request) {
        next.request(numbered(request, Long.toString(number++), index));
      }
    };
  }

  private static TraceRequest numbered(TraceRequest request, String id, BlockTable index) {
    long[] ids = new long[2 * request.blockCount()];
    for (int i = 0; i < request.blockCount(); i++) {
      ids[2 * i + 1] = index.put(request.ids().high(i), request.ids().low(i));
    }
    return new TraceRequest(
        request.timestampMillis(),
        id,
        request.inputTokens(),
        request.outputTokens(),
        request.blockTokens(),
        BlockIds.wrap(ids));
  }
}
