package ucm.lite.curve;

import org.jspecify.annotations.Nullable;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;
import ucm.platform.table.BlockTable;

/**
 * The exact side of an analysis: numbers the blocks and feeds the models that need every one. All
 * of it is dropped at once when a trace has more distinct blocks than memory allows.
 */
final class ExactCurves {
  final BlockTable index = new BlockTable(1 << 10);
  final StackDistances leafLast = new StackDistances(TouchOrder.LEAF_LAST);
  final StackDistances rootLast = new StackDistances(TouchOrder.ROOT_LAST);

  /** The trace so far; null when it is not recorded. */
  final @Nullable RecordedTrace recorded;

  long idealHitBlocks;
  long idealHitTokens;
  private final NumberedRequest cursor = new NumberedRequest();

  ExactCurves(boolean recording) {
    recorded = recording ? new RecordedTrace(index) : null;
  }

  void accept(TraceRequest request) {
    int count = request.blockCount();
    cursor.begin(count, index.size());
    for (int i = 0; i < count; i++) {
      cursor.add(index.put(request.blockIdHigh(i), request.blockIdLow(i)));
    }
    cursor.distinct = index.size();
    cursor.describe(request);
    idealHitBlocks += cursor.known;
    idealHitTokens += cursor.prefixTokens(cursor.known);
    leafLast.accept(cursor);
    rootLast.accept(cursor);
    if (recorded != null) {
      recorded.add(cursor);
    }
    cursor.place++;
  }

  void drop() {
    if (recorded != null) {
      recorded.close();
    }
  }
}
