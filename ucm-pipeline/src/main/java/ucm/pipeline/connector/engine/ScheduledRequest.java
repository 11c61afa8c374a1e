package ucm.pipeline.connector.engine;

/**
 * A request's part in a step of the engine.
 *
 * @param requestId which request
 * @param computedTokens tokens whose KV cache is there when the step begins, those loaded by this step
 *     included; less than before after a load error, when the engine computes again
 * @param newTokens tokens the step computes
 * @param newBlocks numbers of the engine's blocks added to the request's table since the last step
 *     (or since {@code SchedulerConnector.allocated}); not copied, not changed
 * @param resumed whether {@code newBlocks} is the whole table, because the request was preempted and
 *     got new blocks
 */
// Packed on purpose: thousands of numbers are no objects. These records are never compared.
@SuppressWarnings("ArrayRecordComponent")
public record ScheduledRequest(
    String requestId, int computedTokens, int newTokens, int[] newBlocks, boolean resumed) {

  private static final int[] NO_BLOCKS = {};

  /** A request whose blocks are known already. */
  public static ScheduledRequest of(String requestId, int computedTokens, int newTokens) {
    return new ScheduledRequest(requestId, computedTokens, newTokens, NO_BLOCKS, false);
  }
}
