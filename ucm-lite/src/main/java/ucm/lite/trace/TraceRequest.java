package ucm.lite.trace;

import java.util.HexFormat;

/**
 * One request of a trace: when it came, how long it is, and the blocks of its prompt from first to
 * last. Equal block ids mean an equal prefix up to and including that block.
 *
 * <p>Block ids are 128 bits, packed as two longs each (high, low) in one array; an integer id of a
 * JSON trace is {@code (0, id)}. Instances are immutable and safe to keep and to share.
 */
public final class TraceRequest {
  private final double timestampMillis;
  private final String requestId;
  private final int inputTokens;
  private final int outputTokens;
  private final int blockTokens;
  private final long[] packedIds;

  /** Takes the array over: the caller must not change it any more. */
  public TraceRequest(
      double timestampMillis,
      String requestId,
      int inputTokens,
      int outputTokens,
      int blockTokens,
      long[] packedIds) {
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
    this.timestampMillis = timestampMillis;
    this.requestId = requestId;
    this.inputTokens = inputTokens;
    this.outputTokens = outputTokens;
    this.blockTokens = blockTokens;
    this.packedIds = packedIds;
  }

  /**
   * A request with a copy of the ids: the high and low half of each, in the order of the prompt.
   */
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

  /** Milliseconds since the trace's own origin, with fractions where the trace has them. */
  public double timestampMillis() {
    return timestampMillis;
  }

  /** The trace's name for the request (Qwen-Bailian: the chat id); {@code ""} when it has none. */
  public String requestId() {
    return requestId;
  }

  /** Tokens of the prompt. */
  public int inputTokens() {
    return inputTokens;
  }

  /** Tokens of the answer; in UCM traces the most that were allowed. */
  public int outputTokens() {
    return outputTokens;
  }

  /** Tokens of a full block. */
  public int blockTokens() {
    return blockTokens;
  }

  /** The number of blocks, those that occur twice counted twice. */
  public int blockCount() {
    return packedIds.length / 2;
  }

  /** The first 8 bytes of a block's id; 0 for the integer ids of JSON traces. */
  public long blockIdHigh(int block) {
    return packedIds[2 * block];
  }

  /**
   * The last 8 bytes of a block's id; the (unsigned) id itself for the integer ids of JSON traces.
   */
  public long blockIdLow(int block) {
    return packedIds[2 * block + 1];
  }

  /** All block ids in a new array, two longs (high, low) a block. */
  public long[] packedBlockIds() {
    return packedIds.clone();
  }

  /**
   * Prompt tokens that a run of leading blocks covers: {@code min(blockTokens * blocks,
   * inputTokens)}, as the last block may be partial.
   */
  public int prefixTokens(int blocks) {
    return (int) Math.min((long) blockTokens * blocks, inputTokens);
  }

  @Override
  public String toString() {
    String last =
        packedIds.length == 0
            ? "none"
            : HexFormat.of().toHexDigits(blockIdHigh(blockCount() - 1))
                + HexFormat.of().toHexDigits(blockIdLow(blockCount() - 1));
    return "TraceRequest[%s at %s ms, input %s, output %s, %s blocks, last %s]"
        .formatted(requestId, timestampMillis, inputTokens, outputTokens, blockCount(), last);
  }
}
