package ucm.lite.tier;

/**
 * What the tiers of a cluster do for a trace. A block of a prompt is found in the HBM of the engine that
 * served the request, is loaded from DRAM, from a local disk or from storage, or is computed; the five add
 * up to the blocks of the trace. Tokens are those of the blocks, and writes are blocks written into a tier.
 *
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
