package ucm.lite.tier;

/**
 * What the tiers of a cluster do for a trace. A block of a prompt is found in HBM, in DRAM, on a local
 * disk, in storage, or is computed; the five add up to the blocks of the trace.
 *
 * @param hbmBlocks blocks found in the HBM of the engine that served the request
 * @param dramBlocks blocks loaded from DRAM
 * @param diskBlocks blocks loaded from local disks
 * @param storageBlocks blocks loaded from storage
 * @param computedBlocks blocks computed
 * @param hbmTokens tokens of those blocks
 * @param dramTokens tokens of those blocks
 * @param diskTokens tokens of those blocks
 * @param storageTokens tokens of those blocks
 * @param dramWrites blocks written into DRAM
 * @param diskWrites blocks written to local disks
 * @param storageWrites blocks written into storage
 * @param imbalance blocks of the engine that served the most, as a multiple of the mean
 */
public record TierResult(
    long hbmBlocks,
    long dramBlocks,
    long diskBlocks,
    long storageBlocks,
    long computedBlocks,
    long hbmTokens,
    long dramTokens,
    long diskTokens,
    long storageTokens,
    long dramWrites,
    long diskWrites,
    long storageWrites,
    double imbalance) {

  public long hitTokens() {
    return hbmTokens + dramTokens + diskTokens + storageTokens;
  }
}
