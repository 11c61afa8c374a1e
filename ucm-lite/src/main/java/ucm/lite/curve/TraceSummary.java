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

  /**
   * Returns the mean length of a prompt.
   *
   * @return tokens; 0 without requests
   */
  public double meanInputTokens() {
    return ratio(inputTokens, requests);
  }

  /**
   * Returns the mean length of an answer.
   *
   * @return tokens; 0 without requests
   */
  public double meanOutputTokens() {
    return ratio(outputTokens, requests);
  }

  /**
   * Returns the time between the first and the last request.
   *
   * @return milliseconds
   */
  public double timeSpanMillis() {
    return lastTimestampMillis - firstTimestampMillis;
  }

  /**
   * Returns the share of prompt tokens that an unbounded cache hits: the most any cache can.
   *
   * @return from 0 to 1; 0 without tokens
   */
  public double idealTokenHitRate() {
    return tokenHitRate(idealHitTokens);
  }

  /**
   * Returns the share of block references that an unbounded cache hits.
   *
   * @return from 0 to 1; 0 without blocks
   */
  public double idealBlockHitRate() {
    return blockHitRate(idealHitBlocks);
  }

  /**
   * Returns hit tokens as a share of all prompt tokens.
   *
   * @param hitTokens tokens hit by some cache
   * @return from 0 to 1; 0 without tokens
   */
  public double tokenHitRate(long hitTokens) {
    return ratio(hitTokens, inputTokens);
  }

  /**
   * Returns hit blocks as a share of all block references.
   *
   * @param hitBlocks blocks hit by some cache
   * @return from 0 to 1; 0 without blocks
   */
  public double blockHitRate(long hitBlocks) {
    return ratio(hitBlocks, blockReferences);
  }

  private static double ratio(long part, long whole) {
    return whole == 0 ? 0 : (double) part / whole;
  }
}
