package ucm.lite.curve;

/**
 * Totals of a trace.
 *
 * @param requests number of requests
 * @param inputTokens tokens of all prompts
 * @param outputTokens tokens of all answers
 * @param blockTokens tokens a full block holds; 0 when no request has a block
 * @param blockReferences blocks of all prompts, each counted as often as it occurs
 * @param uniqueBlocks distinct blocks
 * @param idealHitBlocks blocks that an unbounded cache hits: for each request the leading run of
 *     blocks that occurred in an earlier request
 * @param idealHitTokens tokens that an unbounded cache hits
 * @param firstTimestampMillis the smallest timestamp, in milliseconds; 0 without requests
 * @param lastTimestampMillis the largest timestamp, in milliseconds; 0 without requests
 */
public record TraceSummary(
    long requests,
    long inputTokens,
    long outputTokens,
    int blockTokens,
    long blockReferences,
    long uniqueBlocks,
    long idealHitBlocks,
    long idealHitTokens,
    double firstTimestampMillis,
    double lastTimestampMillis) {

  /** The mean length of a prompt in tokens; 0 without requests. */
  public double meanInputTokens() {
    return ratio(inputTokens, requests);
  }

  /** The mean length of an answer in tokens; 0 without requests. */
  public double meanOutputTokens() {
    return ratio(outputTokens, requests);
  }

  /** Milliseconds between the first and the last request. */
  public double timeSpanMillis() {
    return lastTimestampMillis - firstTimestampMillis;
  }

  /** The share of prompt tokens that an unbounded cache hits: the most any cache can. */
  public double idealTokenHitRate() {
    return tokenHitRate(idealHitTokens);
  }

  /** The share of block references that an unbounded cache hits. */
  public double idealBlockHitRate() {
    return blockHitRate(idealHitBlocks);
  }

  /** Hit tokens as a share of all prompt tokens; 0 without tokens. */
  public double tokenHitRate(long hitTokens) {
    return ratio(hitTokens, inputTokens);
  }

  /** Hit blocks as a share of all block references; 0 without blocks. */
  public double blockHitRate(long hitBlocks) {
    return ratio(hitBlocks, blockReferences);
  }

  private static double ratio(long part, long whole) {
    return whole == 0 ? 0 : (double) part / whole;
  }
}
