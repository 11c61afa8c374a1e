package ucm.lite.trace;

/**
 * One request of a trace: when it came, how long it is, and the blocks of its prompt from first to
 * last. Equal block ids mean an equal prefix up to and including that block.
 *
 * <p>Block ids are 128 bits, packed as two longs each (high, low) in one array; an integer id of a
 * JSON trace is {@code (0, id)}. Immutable and safe to keep and to share.
 *
 * @param timestampMillis milliseconds since the trace's own origin, with fractions where the trace
 *     has them; finite, not negative
 * @param requestId the trace's name for the request (Qwen-Bailian: the chat id), or {@code ""}
 * @param inputTokens tokens of the prompt
 * @param outputTokens tokens of the answer; in UCM traces the most that were allowed
 * @param blockTokens tokens of a full block
 * @param packedIds the block ids; taken over, so that the caller must not change them any more
 */
@SuppressWarnings("ArrayRecordComponent") // Requests are never compared.
public record TraceRequest(
    double timestampMillis,
    String requestId,
    int inputTokens,
    int outputTokens,
    int blockTokens,
    long[] packedIds) {
  public TraceRequest {
    if (!(timestampMillis >= 0) || Double.isInfinite(timestampMillis)) {
      throw new IllegalArgumentException("timestampMillis must be finite and not negative");
    }
    if (inputTokens < 0 || outputTokens < 0 || blockTokens <= 0) {
      throw new IllegalArgumentException(
          "inputTokens and outputTokens must not be negative, blockTokens must be positive");
    }
    if (packedIds.length % 2 != 0) {
      throw new IllegalArgumentException(
          "packedIds must hold two longs a block, found " + packedIds.length + " longs");
    }
  }

  /** A request with a copy of the ids. */
  public static TraceRequest of(
      double timestampMillis,
      String requestId,
      int inputTokens,
      int outputTokens,
      int blockTokens,
      long[] packedIds) {
    return new TraceRequest(
        timestampMillis, requestId, inputTokens, outputTokens, blockTokens, packedIds.clone());
  }

  /** The same request in other blocks, whose ids are taken over. */
  public TraceRequest withBlocks(int tokensABlock, long[] ids) {
    return new TraceRequest(
        timestampMillis, requestId, inputTokens, outputTokens, tokensABlock, ids);
  }

  /** The number of blocks, those that occur twice counted twice. */
  public int blockCount() {
    return packedIds.length / 2;
  }

  /** The first 8 bytes of a block's id; 0 for the integer ids of JSON traces. */
  public long blockIdHigh(int block) {
    return packedIds[2 * block];
  }

  /** The last 8 bytes of a block's id; the (unsigned) integer id itself in JSON traces. */
  public long blockIdLow(int block) {
    return packedIds[2 * block + 1];
  }

  /** All block ids in a new array, two longs (high, low) a block. */
  public long[] packedBlockIds() {
    return packedIds.clone();
  }

  /** Prompt tokens that a run of leading blocks covers, as the last block may be partial. */
  public int prefixTokens(int blocks) {
    return (int) Math.min((long) blockTokens * blocks, inputTokens);
  }

  /** Prompt tokens in a block. */
  public int tokensOf(int block) {
    return prefixTokens(block + 1) - prefixTokens(block);
  }
}
