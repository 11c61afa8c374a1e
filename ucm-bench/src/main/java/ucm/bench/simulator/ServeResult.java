package ucm.bench.simulator;

import java.util.List;
import ucm.cli.output.Spread;

/**
 * What an engine did.
 *
 * @param served its requests, in the order in which they finished
 * @param steps how many steps that took
 * @param mostRequests most requests in one step
 * @param preemptions how often a request lost its memory to others
 * @param loadedBlocks blocks that were loaded and compared, parts of all ranks counted as one
 * @param failedBlocks blocks that could not be loaded and were computed
 * @param savedBlocks blocks that were handed over to be saved
 * @param seconds by the engine's clock
 */
public record ServeResult(
    List<Served> served,
    int steps,
    int mostRequests,
    int preemptions,
    long loadedBlocks,
    long failedBlocks,
    long savedBlocks,
    double seconds) {

  /**
   * What became of a request: tokens of its prompt, those found on the device and outside when it was first
   * admitted, how often it lost its memory to others, and the times from its arrival to its first and last
   * token.
   */
  public record Served(
      String id,
      int promptTokens,
      int hbmTokens,
      int externalTokens,
      int preemptions,
      long ttftNanos,
      long totalNanos) {}

  public ServeResult {
    served = List.copyOf(served);
  }

  /** Mean time to the first token, in milliseconds. */
  public double meanTtftMillis() {
    return served.stream().mapToLong(Served::ttftNanos).average().orElse(0) / 1e6;
  }

  /** The time to the first token that a share of the requests does not exceed, in milliseconds. */
  public double ttftMillis(double share) {
    double[] millis = served.stream().mapToDouble(one -> one.ttftNanos / 1e6).toArray();
    return Spread.quantile(millis, share);
  }

  public long promptTokens() {
    return served.stream().mapToLong(Served::promptTokens).sum();
  }

  public long hbmTokens() {
    return served.stream().mapToLong(Served::hbmTokens).sum();
  }

  public long externalTokens() {
    return served.stream().mapToLong(Served::externalTokens).sum();
  }
}
