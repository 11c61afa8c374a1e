package ucm.lite.trace;

import ucm.api.BlockIds;

/**
 * One request of a trace: when it came, how long it is, and the blocks of its prompt from first to
 * last. Equal block ids mean an equal prefix up to and including that block.
 *
 * <p>Immutable and safe to keep and to share.
 *
 * @param timestampMillis milliseconds since the trace's own origin, with fractions where the trace
 *     has them; finite, not negative
 * @param requestId the trace's name for the request (Qwen-Bailian: the chat id), or {@code ""}
 * @param inputTokens tokens of the prompt
 * @param outputTokens tokens of the answer; in UCM traces the most that were allowed
 * @param blockTokens tokens of a full block
 * @param ids of its blocks; an integer id of a JSON trace, which is unsigned, is {@code (0, id)}
 */
public record TraceRequest(
    double timestampMillis,
    String requestId,
    int inputTokens,
    int outputTokens,
    int blockTokens,
    BlockIds ids) {
  public TraceRequest {
    if (!(timestampMillis >= 0) || Double.isInfinite(timestampMillis)) {
      throw new IllegalArgumentException("timestampMillis must be finite and not negative");
    }
    if (inputTokens < 0 || outputTokens < 0 || blockTokens <= 0) {
      throw new IllegalArgumentException(
          "inputTokens and outputTokens must not be negative, blockTokens must be positive");
    }
  }

  /** The number of blocks, those that occur twice counted twice. */
  public int blockCount() {
    return ids.size();
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
