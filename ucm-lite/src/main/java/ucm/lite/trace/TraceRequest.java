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
   * Creates a request.
   *
   * @param timestampMillis milliseconds since an origin that is the trace's own; finite, not
   *     negative
   * @param requestId the trace's name for the request, or {@code ""} when it has none
   * @param inputTokens tokens of the prompt, not negative
   * @param outputTokens tokens generated (UCM traces: the most that may be generated), not negative
   * @param blockTokens tokens a full block holds, positive
   * @param packedIds high and low half of each block id, in the order of the prompt; copied
   * @return a new request
   * @throws IllegalArgumentException when a value is out of its range or the array has odd length
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

  /**
   * Returns when the request came.
   *
   * @return milliseconds since the trace's own origin, with fractions where the trace has them
   */
  public double timestampMillis() {
    return timestampMillis;
  }

  /**
   * Returns the trace's name for the request.
   *
   * @return the request id (Qwen-Bailian: the chat id), {@code ""} when the trace has none
   */
  public String requestId() {
    return requestId;
  }

  /**
   * Returns the length of the prompt.
   *
   * @return tokens
   */
  public int inputTokens() {
    return inputTokens;
  }

  /**
   * Returns the length of the answer.
   *
   * @return tokens; in UCM traces the most that were allowed
   */
  public int outputTokens() {
    return outputTokens;
  }

  /**
   * Returns the size of a full block.
   *
   * @return tokens
   */
  public int blockTokens() {
    return blockTokens;
  }

  /**
   * Returns the number of blocks.
   *
   * @return the blocks, those that occur twice counted twice
   */
  public int blockCount() {
    return packedIds.length / 2;
  }

  /**
   * Returns the first 8 bytes of a block id.
   *
   * @param block position in the prompt, from 0 (inclusive) to {@link #blockCount()} (exclusive)
   * @return the high half; 0 for the integer ids of JSON traces
   * @throws ArrayIndexOutOfBoundsException when there is no such block
   */
  public long blockIdHigh(int block) {
    return packedIds[2 * block];
  }

  /**
   * Returns the last 8 bytes of a block id.
   *
   * @param block position in the prompt, from 0 (inclusive) to {@link #blockCount()} (exclusive)
   * @return the low half; the (unsigned) id itself for the integer ids of JSON traces
   * @throws ArrayIndexOutOfBoundsException when there is no such block
   */
  public long blockIdLow(int block) {
    return packedIds[2 * block + 1];
  }

  /**
   * Returns all block ids.
   *
   * @return a new array, two longs (high, low) a block
   */
  public long[] packedBlockIds() {
    return packedIds.clone();
  }

  /**
   * Returns how many prompt tokens a run of leading blocks covers.
   *
   * @param blocks length of the run, not negative
   * @return {@code min(blockTokens * blocks, inputTokens)}, as the last block may be partial
   */
  public int prefixTokens(int blocks) {
    return (int) Math.min((long) blockTokens * blocks, inputTokens);
  }

  /**
   * Describes the request without its block ids.
   *
   * @return for a person to read
   */
  @Override
  public String toString() {
    String last =
        packedIds.length == 0
            ? "none"
            : HexFormat.of().toHexDigits(blockIdHigh(blockCount() - 1))
                + HexFormat.of().toHexDigits(blockIdLow(blockCount() - 1));
    return "TraceRequest["
        + requestId
        + " at "
        + timestampMillis
        + " ms, input "
        + inputTokens
        + ", output "
        + outputTokens
        + ", "
        + blockCount()
        + " blocks, last "
        + last
        + "]";
  }
}
