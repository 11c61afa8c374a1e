package ucm.lite.edit;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.trace.TraceException;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.platform.table.BlockTable;

/**
 * Brings the requests of one or several traces into the order of time. They are kept
 * until all are there: its request id, 27 to 46 bytes a distinct block, and 36 bytes a request and 4 a
 * reference, beyond a bound in temporary files. Requests of the same time keep the order they came in; equal
 * ids are equal blocks.
 */
public final class TraceSorter implements TraceVisitor, AutoCloseable {
  private final BlockTable index = new BlockTable(1 << 10);
  private final RecordedTrace all = new RecordedTrace(index);
  private final List<String> requestIds = new ArrayList<>();
  private final NumberedRequest cursor = new NumberedRequest();
  private final boolean aligned;
  private double startMillis = Double.POSITIVE_INFINITY;

  /**
   * An empty one.
   *
   * @param aligned whether time begins at 0, with the earliest request of all
   */
  public TraceSorter(boolean aligned) {
    this.aligned = aligned;
  }

  @Override
  public void request(TraceRequest request) {
    if (all.blockTokens() > 0
        && request.blockCount() > 0
        && request.blockTokens() != all.blockTokens()) {
      throw new TraceException(
          String.format(
              "traces with blocks of %s and of %s tokens cannot be one trace: write each by itself",
              all.blockTokens(), request.blockTokens()));
    }
    startMillis = Math.min(startMillis, request.timestampMillis());
    cursor.begin(request.blockCount(), index.size());
    for (int i = 0; i < request.blockCount(); i++) {
      cursor.add(index.put(request.ids().high(i), request.ids().low(i)));
    }
    cursor.describe(request);
    all.add(cursor);
    requestIds.add(request.requestId());
  }

  /** Hands out all requests in the order of time. */
  public void writeTo(TraceVisitor next) {
    List<Integer> order =
        IntStream.range(0, all.requests())
            .boxed()
            .sorted(Comparator.comparingDouble(all::timestampMillis))
            .toList();
    for (int request : order) {
      all.read(request, cursor);
      long[] ids = new long[2 * cursor.count];
      for (int i = 0; i < cursor.count; i++) {
        ids[2 * i] = index.high(cursor.blocks[i]);
        ids[2 * i + 1] = index.low(cursor.blocks[i]);
      }
      next.request(
          new TraceRequest(
              all.timestampMillis(request) - (aligned ? startMillis : 0),
              requestIds.get(request),
              cursor.inputTokens,
              cursor.outputTokens,
              Math.max(1, cursor.blockTokens),
              BlockIds.wrap(ids)));
    }
  }

  @Override
  public void close() {
    all.close();
  }
}
