package ucm.lite.record;

import ucm.lite.trace.TraceRequest;

/**
 * One request with its blocks numbered, as the models see it. A cursor: one instance is filled again
 * for each request, so nothing is allocated per request.
 */
public final class NumberedRequest {
  /** Numbers of the blocks in prompt order; longer than {@link #count}. Only read by models. */
  public int[] blocks = new int[256];

  /** How many entries of {@link #blocks} are meant. */
  public int count;

  /** How many of the leading blocks occurred in some earlier request. */
  public int known;

  /** Number of distinct blocks so far, this request included: all block numbers are below. */
  public int distinct;

  /** The place of the request in the recording, from 0. */
  public int number;

  /** Its place in the trace, from 0: another one when the recording is a sample. */
  public int place;

  /** Where its blocks begin among all references of the recording. */
  public long start;

  /** What {@link RecordedTrace#read} reads it from. */
  final int[] facts = new int[RecordedTrace.FACTS];

  public double timestampMillis;
  public int inputTokens;
  public int outputTokens;
  public int blockTokens;

  public NumberedRequest() {}

  /**
   * Empties it, with room for so many blocks.
   *
   * @param before number of distinct blocks of all earlier requests
   */
  public void begin(int wanted, int before) {
    if (wanted > blocks.length) {
      blocks = new int[Math.max(wanted, 2 * blocks.length)];
    }
    count = 0;
    known = 0;
    distinct = before;
  }

  /** Adds a block; after the last one {@link #distinct} is to be set. */
  public void add(int block) {
    if (block < distinct && known == count) {
      known++;
    }
    blocks[count++] = block;
  }

  /** Takes over what a request says beside its blocks. */
  public void describe(TraceRequest request) {
    timestampMillis = request.timestampMillis();
    inputTokens = request.inputTokens();
    outputTokens = request.outputTokens();
    blockTokens = request.blockTokens();
  }

  /** Returns the block that is touched after {@code before} others. */
  public int touched(TouchOrder order, int before) {
    return blocks[order == TouchOrder.LEAF_LAST ? before : count - 1 - before];
  }

  /** Returns how many prompt tokens a run of leading blocks covers; the last may be partial. */
  public int prefixTokens(int run) {
    return (int) Math.min((long) blockTokens * run, inputTokens);
  }
}
