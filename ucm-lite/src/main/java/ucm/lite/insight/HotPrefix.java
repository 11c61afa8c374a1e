package ucm.lite.insight;

/**
 * A prefix that many prompts begin with, as long as it stays (nearly) as frequent.
 *
 * @param lastBlockId the id of its last block: 32 hex digits
 * @param blocks its length
 * @param requests prompts that begin with it
 */
public record HotPrefix(String lastBlockId, int blocks, long requests) {}
