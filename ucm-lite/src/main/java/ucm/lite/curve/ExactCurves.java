package ucm.lite.curve;

import org.jspecify.annotations.Nullable;
import ucm.lite.record.BlockNumbers;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

/**
 * The exact side of an analysis: numbers the blocks and feeds the models that need every one. All
 * of it is dropped at once when a trace has more distinct blocks than memory allows.
 */
final class ExactCurves {
  private final BlockNumbers index = new BlockNumbers();
  private final NumberedRequest cursor = new NumberedRequest();
  private final StackDistances leafLast = new StackDistances(TouchOrder.LEAF_LAST);
  private final StackDistances rootLast = new StackDistances(TouchOrder.ROOT_LAST);
  private final @Nullable RecordedTrace recorded;
  private long idealHitBlocks;
  private long idealHitTokens;

  ExactCurves(boolean recording) {
    recorded = recording ? new RecordedTrace(index) : null;
  }

  void accept(TraceRequest request) {
    number(request);
    idealHitBlocks += cursor.known;
    idealHitTokens += cursor.prefixTokens(cursor.known);
    leafLast.accept(cursor);
    rootLast.accept(cursor);
    if (recorded != null) {
      recorded.add(cursor);
    }
    cursor.place++;
  }

  private void number(TraceRequest request) {
    int count = request.blockCount();
    cursor.ensureBlocks(count);
    int[] blocks = cursor.blocks;
    int before = index.size();
    int known = 0;
    for (int i = 0; i < count; i++) {
      int block = index.number(request.blockIdHigh(i), request.blockIdLow(i));
      blocks[i] = block;
      if (block < before && known == i) {
        known++;
      }
    }
    cursor.count = count;
    cursor.known = known;
    cursor.distinct = index.size();
    cursor.describe(request);
  }

  int uniqueBlocks() {
    return index.size();
  }

  long idealHitBlocks() {
    return idealHitBlocks;
  }

  long idealHitTokens() {
    return idealHitTokens;
  }

  LruCurves curves() {
    return new LruCurves(leafLast.curve(), rootLast.curve());
  }

  /** The trace so far; null when it is not recorded. */
  @Nullable RecordedTrace recorded() {
    return recorded;
  }

  void drop() {
    if (recorded != null) {
      recorded.close();
    }
  }
}
