package ucm.lite.tier;

/**
 * How fast an engine computes and loads keys and values. Computing is <em>simulated compute</em>: a
 * rate that was named, or operations divided by operations a second. Nothing of it was measured.
 *
 * @param model what is served
 * @param tensorParallel GPUs of an engine, 1 or more
 * @param prefillTokensPerSecond tokens an engine computes a second whatever the prompt, or 0 to
 *     derive the time from the operations
 * @param operationsPerSecond floating-point operations an engine performs a second, all its GPUs
 *     together, utilization included; used when no rate is given
 * @param dramBytesPerSecond from DRAM into an engine's HBM
 * @param diskBytesPerSecond from local disks into an engine's HBM
 * @param storageBytesPerSecond from storage into an engine's HBM
 * @param loadLatencySeconds that a load takes whatever its size
 */
public record ServingPlan(
    KvModel model,
    int tensorParallel,
    double prefillTokensPerSecond,
    double operationsPerSecond,
    double dramBytesPerSecond,
    double diskBytesPerSecond,
    double storageBytesPerSecond,
    double loadLatencySeconds) {

  /** Prompts longer than this are not looked at for the break-even. */
  private static final int LONGEST_PROMPT = 1 << 20;

  public ServingPlan {
    if (tensorParallel < 1 || !(prefillTokensPerSecond > 0 || operationsPerSecond > 0)) {
      throw new IllegalArgumentException("an engine needs a GPU and a prefill rate above 0");
    }
    double slowest =
        Math.min(dramBytesPerSecond, Math.min(diskBytesPerSecond, storageBytesPerSecond));
    if (!(slowest > 0 && loadLatencySeconds >= 0)) {
      throw new IllegalArgumentException("bandwidths are above 0, latencies 0 or more");
    }
  }

  /**
   * Seconds that an engine computes a prompt of {@code to} tokens of which {@code from} are there.
   */
  public double computeSeconds(long from, long to) {
    return prefillTokensPerSecond > 0
        ? (to - from) / prefillTokensPerSecond
        : model.prefillOperations(from, to) / operationsPerSecond;
  }

  /** Seconds that an engine loads tokens from DRAM, local disks and storage; 0 without tokens. */
  public double loadSeconds(long dramTokens, long diskTokens, long storageTokens) {
    if (dramTokens + diskTokens + storageTokens == 0) {
      return 0;
    }
    double bytes = model.storedBytesPerToken(tensorParallel);
    return loadLatencySeconds
        + dramTokens * bytes / dramBytesPerSecond
        + diskTokens * bytes / diskBytesPerSecond
        + storageTokens * bytes / storageBytesPerSecond;
  }

  /**
   * The shortest prefix that is loaded from storage faster than it is computed, in whole blocks:
   * advice for {@code load_tokens_threshold}; -1 when loading is slower up to a million tokens.
   */
  public long breakEvenTokens(int blockTokens) {
    for (long tokens = blockTokens; tokens <= LONGEST_PROMPT; tokens += blockTokens) {
      if (loadSeconds(0, 0, tokens) < computeSeconds(0, tokens)) {
        return tokens;
      }
    }
    return -1;
  }
}
