package ucm.pipeline.connector.statistics;

/**
 * What the look-ups of an engine found since it was opened; each request counts once, by its first
 * look-up.
 *
 * @param requests requests of at least one block that were looked up
 * @param totalBlocks full blocks of their prompts
 * @param hbmBlocks those that were on the device already
 * @param externalBlocks those of the others that were found outside, before {@code hit_ratio} and
 *     {@code load_tokens_threshold} cut them
 */
public record HitStatistics(long requests, long totalBlocks, long hbmBlocks, long externalBlocks) {

  public static final HitStatistics NONE = new HitStatistics(0, 0, 0, 0);

  public HitStatistics plus(int blocks, int hbm, int external) {
    return new HitStatistics(
        requests + 1, totalBlocks + blocks, hbmBlocks + hbm, externalBlocks + external);
  }

  /** The share of all blocks that was found outside, 0 to 1. */
  public double externalHitRate() {
    return totalBlocks == 0 ? 0 : (double) externalBlocks / totalBlocks;
  }
}
