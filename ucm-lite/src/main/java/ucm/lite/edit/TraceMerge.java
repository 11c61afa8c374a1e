package ucm.lite.edit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.trace.TraceException;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.platform.table.BlockTable;

/**
 * Brings the requests of several traces into the order of time. They are kept until all are there:
 * its request id, 27 to 46 bytes a distinct block, and 36 bytes a request and 4 a reference, beyond
 * a bound in temporary files. Requests of the same time keep the order they came in.
 */
public final class TraceMerge implements TraceVisitor, AutoCloseable {
  private final boolean separate;
  private final boolean aligned;
  private final BlockTable index = new BlockTable(1 << 10);
  private final RecordedTrace all = new RecordedTrace(index);
  private final List<String> requestIds = new ArrayList<>();
  private final NumberedRequest cursor = new NumberedRequest();
  // Of the first request of each source that has any, and the earliest time of that source.
  private final List<Integer> firstOfSource = new ArrayList<>();
  private final List<Double> starts = new ArrayList<>();
  private int source;
  private boolean begins = true;

  /**
   * An empty merge.
   *
   * @param separate whether equal ids of different sources are different blocks
   * @param aligned whether the time of each source begins at 0
   */
  public TraceMerge(boolean separate, boolean aligned) {
    this.separate = separate;
    this.aligned = aligned;
  }

  public void nextSource() {
    source++;
    begins = true;
  }

  @Override
  public void request(TraceRequest request) {
    if (begins) {
      firstOfSource.add(all.requests());
      starts.add(Double.POSITIVE_INFINITY);
      begins = false;
    }
    starts.set(starts.size() - 1, Math.min(starts.getLast(), request.timestampMillis()));
    if (all.blockTokens() > 0
        && request.blockCount() > 0
        && request.blockTokens() != all.blockTokens()) {
      throw new TraceException(
          String.format(
              "traces with blocks of %s and of %s tokens cannot be merged; join the smaller blocks"
                  + " first (ucm trace convert --to-block-tokens)",
              all.blockTokens(), request.blockTokens()));
    }
    long salt = separate ? BlockTable.hash(source, source) : 0;
    cursor.begin(request.blockCount(), index.size());
    for (int i = 0; i < request.blockCount(); i++) {
      cursor.add(index.put(request.blockIdHigh(i) ^ salt, request.blockIdLow(i)));
    }
    cursor.describe(request);
    cursor.timestampMillis = request.timestampMillis();
    all.add(cursor);
    requestIds.add(request.requestId());
  }

  /**
   * Hands out all requests in the order of time; ids of separate sources are 0, 1, 2, ... in the
   * order first read.
   */
  public void writeTo(TraceVisitor next) {
    List<Integer> order =
        IntStream.range(0, all.requests())
            .boxed()
            .sorted(Comparator.comparingDouble(this::timestampMillis))
            .toList();
    for (int request : order) {
      all.read(request, cursor);
      long[] ids = new long[2 * cursor.count];
      for (int i = 0; i < cursor.count; i++) {
        int block = cursor.blocks[i];
        ids[2 * i] = separate ? 0 : index.high(block);
        ids[2 * i + 1] = separate ? block : index.low(block);
      }
      next.request(
          new TraceRequest(
              timestampMillis(request),
              requestIds.get(request),
              cursor.inputTokens,
              cursor.outputTokens,
              Math.max(1, cursor.blockTokens),
              ids));
    }
  }

  /** When a request is in the merged trace; aligned, the earliest of its source is at 0. */
  private double timestampMillis(int request) {
    if (!aligned) {
      return all.timestampMillis(request);
    }
    int found = Collections.binarySearch(firstOfSource, request);
    return all.timestampMillis(request) - starts.get(found >= 0 ? found : -found - 2);
  }

  @Override
  public void close() {
    all.close();
  }
}
