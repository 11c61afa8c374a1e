package ucm.store.file.tier;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.StoreTimeoutException;
import ucm.api.TransferTask;

/**
 * A flush of two tiers: waits for the dumps of their store, for the upper tier, for what is on its way down,
 * and for the lower one. A block that the upper tier lost and the lower one has is no failure.
 */
final class TierFlush {

  private final Tiers tiers;
  private final List<TransferTask> tasks;
  private final WriteBehind.Failures failures;
  private final Consumer<FlushResult> untold;

  /**
   * A flush that has not begun.
   *
   * @param tasks those of their store that have not completed
   * @param failures has a block told that is in neither tier
   * @param untold has that told as well which a stage has told here
   */
  TierFlush(
      Tiers tiers,
      List<TransferTask> tasks,
      WriteBehind.Failures failures,
      Consumer<FlushResult> untold) {
    this.tiers = tiers;
    this.tasks = tasks;
    this.failures = failures;
    this.untold = untold;
  }

  /** What their store has to tell without waiting. */
  interface Told {
    FlushResult take() throws InterruptedException;
  }

  /** Waits; see {@link ucm.api.Store#flush}. */
  FlushResult run(Duration timeout, Told own) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    awaitDumps(end);
    FlushResult above = tiers.upper().flush(left(end));
    WriteBehind writes = tiers.writes();
    long onTheWay =
        tiers.writesThrough() ? writes.await(writes.lastOffer(), left(end).toNanos()) : 0;
    FlushResult below = tiers.lower().flush(left(end));
    if (below.failedCount() > 0) {
      untold.accept(below);
    }
    int _ = tellLost(tiers, above, failures);
    FlushResult told = own.take();
    return new FlushResult(
        Math.max(told.pendingBlocks(), above.pendingBlocks() + onTheWay + below.pendingBlocks()),
        told.failedBlocks(),
        told.failedCount(),
        told.cause());
  }

  private static Duration left(long end) {
    return Duration.ofNanos(Math.max(0, end - System.nanoTime()));
  }

  private void awaitDumps(long end) throws InterruptedException {
    try {
      for (TransferTask task : tasks) {
        if (task.isDump()) {
          task.await(left(end));
        }
      }
    } catch (StoreTimeoutException _) {
      // What their store tells says which.
    }
  }

  /**
   * Has blocks told that the upper tier lost, unless they are in the lower one.
   *
   * @param above what the upper tier told
   * @return how many
   */
  static int tellLost(Tiers tiers, FlushResult above, WriteBehind.Failures failures) {
    BlockIds ids = above.failedBlocks();
    int lost = 0;
    for (int i = 0; i < ids.size(); i++) {
      if (!tiers.below().contains(ids.high(i), ids.low(i))) {
        failures.failed(ids.high(i), ids.low(i), above.cause());
        lost++;
      }
    }
    return lost;
  }
}
