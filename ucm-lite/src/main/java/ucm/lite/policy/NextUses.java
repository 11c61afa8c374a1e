package ucm.lite.policy;

import java.util.Arrays;
import ucm.lite.record.IntTape;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;

/**
 * For each reference of a trace, the request in which its block is useful next: the next one that
 * has it, if it is there among the blocks that an unbounded cache would hit. Found by one walk
 * backwards. 4 bytes a reference, kept like the trace itself.
 */
final class NextUses implements AutoCloseable {
  static final int NEVER = -1;

  private final IntTape tape;

  NextUses(RecordedTrace trace) {
    tape = new IntTape(RecordedTrace.HEAP_REFERENCES);
    tape.extend(trace.references());
    int[] next = new int[trace.uniqueBlocks()];
    Arrays.fill(next, NEVER);
    NumberedRequest cursor = new NumberedRequest();
    int[] uses = new int[256];
    for (int r = trace.requests() - 1; r >= 0; r--) {
      trace.read(r, cursor);
      if (cursor.count > uses.length) {
        uses = new int[2 * cursor.count];
      }
      for (int i = 0; i < cursor.count; i++) {
        uses[i] = next[cursor.blocks[i]];
      }
      tape.write(cursor.start, uses, cursor.count);
      for (int i = cursor.count - 1; i >= 0; i--) {
        next[cursor.blocks[i]] = i < cursor.known ? r : NEVER;
      }
    }
  }

  /** Copies the next uses of all blocks of a request; the target must be long enough. */
  void read(NumberedRequest request, int[] target) {
    tape.read(request.start, target, request.count);
  }

  @Override
  public void close() {
    tape.close();
  }
}
