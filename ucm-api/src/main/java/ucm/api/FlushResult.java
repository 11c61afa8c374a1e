package ucm.api;

import org.jspecify.annotations.Nullable;

/**
 * What a {@link Store#flush} found.
 *
 * @param pendingBlocks blocks accepted but neither durable nor failed when the wait ended; one that was
 *     on its way from a stage to the next at that moment may be counted by both
 * @param failedBlocks blocks that failed since the last flush; a store may name fewer than it counts
 * @param failedCount how many blocks failed since the last flush
 * @param cause the first fault among them, or null
 */
public record FlushResult(
    long pendingBlocks, BlockIds failedBlocks, long failedCount, @Nullable Throwable cause) {

  private static final FlushResult CLEAN = new FlushResult(0, BlockIds.empty(), 0, null);

  /** Nothing pending, nothing failed. */
  public static FlushResult clean() {
    return CLEAN;
  }

  /** Whether everything accepted is durable. */
  public boolean ok() {
    return pendingBlocks == 0 && failedCount == 0;
  }
}
