package ucm.lite.curve;

import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

/**
 * The LRU curve of traffic that is still coming, from a sample of bounded size (fixed-size SHARDS;
 * see {@link Sampling}): exact until there are more distinct blocks than the sample holds.
 *
 * <p>Memory: about 100 bytes a sampled block, and 200 KB. Thread-safe: adding takes a lock, which
 * {@link #snapshot} holds for some ten microseconds.
 */
public final class OnlineCurve {
  private final ShardsSampler sampler;
  private long requests;
  private long inputTokens;

  /** A curve of no traffic; the sample keeps so many blocks at most. */
  public OnlineCurve(int sampledBlocks) {
    sampler = new ShardsSampler(Sampling.fixedSize(sampledBlocks));
  }

  /** Takes the next request in; all have blocks of one size. */
  public synchronized void add(TraceRequest request) {
    requests++;
    inputTokens += request.inputTokens();
    sampler.accept(request);
  }

  /** The curve of the requests so far, which does not change any more. */
  public synchronized Snapshot snapshot() {
    return new Snapshot(
        requests, inputTokens, sampler.uniqueBlocks(), sampler.curve(TouchOrder.ROOT_LAST));
  }

  /**
   * What there is to know at one moment.
   *
   * @param requests requests so far
   * @param inputTokens tokens of their prompts
   * @param uniqueBlocks distinct blocks, estimated
   * @param curve the LRU curve with roots touched last, whose distances are estimated without bias
   */
  public record Snapshot(long requests, long inputTokens, long uniqueBlocks, LruCurve curve) {
    /** The share of input tokens that a cache of so many blocks would have hit, 0 to 1. */
    public double hitRate(long capacityBlocks) {
      return inputTokens == 0
          ? 0
          : Math.min(1, (double) curve.hitTokens(capacityBlocks) / inputTokens);
    }
  }
}
