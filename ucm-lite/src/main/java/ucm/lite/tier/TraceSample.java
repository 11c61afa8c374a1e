package ucm.lite.tier;

import ucm.lite.curve.Sampling;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.platform.table.BlockTable;

/**
 * Records a small copy of a trace: of each request only the blocks that are in a sample, so that a
 * simulation of caches that are smaller by the same rate stands for one of the full size
 * (Waldspurger et al.: Cache Modeling and Optimization using Miniature Simulations, USENIX ATC '17).
 *
 * <p>Memory is bounded: when the sample has more blocks than allowed, the rate is halved, and what was
 * recorded of the blocks that leave is forgotten. So the recording is always one of a fixed rate, the
 * same from its first request to its last, and until the bound is passed for the first time it is the
 * trace itself if that is what was asked for. Requests without a sampled block are left out; the others
 * keep their time and their place in the trace, and their input is the sampled blocks.
 * Used by one thread.
 */
public final class TraceSample implements TraceVisitor, AutoCloseable {
  private static final int THRESHOLD_BITS = 24;
  private static final long ALL = 1L << THRESHOLD_BITS;

  private final int maxBlocks;
  private final NumberedRequest cursor = new NumberedRequest();
  private long threshold;
  private BlockTable index = new BlockTable(1 << 10);
  private RecordedTrace recorded = new RecordedTrace(index);
  private int requests;
  private long references;
  private long tokens;
  private long sampledTokens;

  public TraceSample(Sampling sampling) {
    maxBlocks = sampling.maxBlocks();
    threshold = Math.max(1, Math.round(sampling.rate() * ALL));
  }

  @Override
  public void request(TraceRequest request) {
    int count = request.blockCount();
    references += count;
    tokens += request.prefixTokens(count);
    cursor.begin(count, index.size());
    int kept = 0;
    for (int i = 0; i < count; i++) {
      if (add(request.ids().high(i), request.ids().low(i))) {
        kept += request.tokensOf(i);
      }
    }
    cursor.place = requests++;
    cursor.describe(request);
    cursor.inputTokens = whole() ? request.inputTokens() : kept;
    record(kept);
    while (index.size() > maxBlocks && threshold > 1) {
      halve();
    }
  }

  /** Puts a block into the cursor if it is in the sample; says whether it is. */
  private boolean add(long high, long low) {
    if (Sampling.hash(high, low) >>> (Long.SIZE - THRESHOLD_BITS) >= threshold) {
      return false;
    }
    cursor.add(index.put(high, low));
    return true;
  }

  private void record(int kept) {
    cursor.distinct = index.size();
    sampledTokens += kept;
    if (whole() || cursor.count > 0) {
      recorded.add(cursor);
    }
  }

  /** Records again what is in half of the sample. */
  private void halve() {
    RecordedTrace before = recorded;
    threshold /= 2;
    index = new BlockTable(1 << 10);
    recorded = new RecordedTrace(index);
    sampledTokens = 0;
    NumberedRequest from = new NumberedRequest();
    for (int request = 0; request < before.requests(); request++) {
      before.read(request, from);
      cursor.begin(from.count, index.size());
      int kept = 0;
      for (int i = 0; i < from.count; i++) {
        if (add(before.idHigh(from.blocks[i]), before.idLow(from.blocks[i]))) {
          kept += from.prefixTokens(i + 1) - from.prefixTokens(i);
        }
      }
      cursor.place = from.place;
      cursor.timestampMillis = from.timestampMillis;
      cursor.inputTokens = kept;
      cursor.outputTokens = from.outputTokens;
      cursor.blockTokens = from.blockTokens;
      record(kept);
    }
    before.close();
  }

  /** Whether the sample is the whole trace, so that nothing is estimated. */
  public boolean whole() {
    return threshold == ALL;
  }

  /** The share of the blocks that are in the sample, above 0. */
  public double rate() {
    return (double) threshold / ALL;
  }

  /**
   * The recording, for simulations; it is closed with the sample, and is another one after more
   * requests.
   */
  public RecordedTrace recorded() {
    return recorded;
  }

  /** How to get from the small copy to the trace, of the requests so far. */
  public SampleScale scale() {
    return new SampleScale(rate(), references, recorded.references(), tokens, sampledTokens);
  }

  @Override
  public void close() {
    recorded.close();
  }
}
