package ucm.api;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
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

  /**
   * Which dumps are not settled, and which blocks failed since the last flush: what {@link Store#flush}
   * asks. Thread-safe.
   */
  static final class Ledger {

    /** More failed blocks than this are counted, not named. */
    static final int MAX_NAMED = 1 << 14;

    private final Runnable onFailure;
    // Guarded by this, as is what follows; in order of arrival.
    private final SequencedSet<TransferTask> open = new LinkedHashSet<>();
    private final SequencedSet<BlockIds> failed = new LinkedHashSet<>();
    private long failedCount;
    private @Nullable Throwable cause;

    /**
     * Knows no dump.
     *
     * @param onFailure told of each block that failed, under a lock
     */
    Ledger(Runnable onFailure) {
      this.onFailure = onFailure;
    }

    synchronized void add(TransferTask dump) {
      open.add(dump);
    }

    /** Forgets a dump, with which all is done. */
    void settle(TransferTask dump) {
      synchronized (this) {
        if (open.remove(dump)) {
          notifyAll();
        }
      }
      dump.settle();
    }

    /** Notes the blocks of a dump that failed; called before the task is seen to have completed. */
    void noteFailures(TransferResult result) {
      BlockIds blocks = result.failedBlocks();
      for (int i = 0; i < blocks.size(); i++) {
        failed(blocks.high(i), blocks.low(i), result.cause());
      }
    }

    /** Notes a block that will not become durable; the first fault is kept. */
    synchronized void failed(long high, long low, @Nullable Throwable fault) {
      if (isNew(BlockIds.of(high, low), fault)) {
        onFailure.run();
      }
    }

    private boolean isNew(BlockIds id, @Nullable Throwable fault) {
      boolean isNew = !failed.contains(id);
      if (isNew) {
        failedCount++;
        cause = cause == null ? fault : cause;
        if (failed.size() < MAX_NAMED) {
          failed.add(id);
        }
      }
      return isNew;
    }

    /** Notes the failures of a result again, as its reader was not told after all. */
    synchronized void takeBack(FlushResult untold) {
      BlockIds ids = untold.failedBlocks();
      cause = untold.cause() == null ? cause : untold.cause();
      failedCount += untold.failedCount() - ids.size();
      for (int i = 0; i < ids.size(); i++) {
        var _ = isNew(BlockIds.of(ids.high(i), ids.low(i)), null);
      }
    }

    /**
     * Waits until the dumps up to a task are settled.
     *
     * @param lastTask the number of that task
     * @param end until when, of {@link System#nanoTime}
     * @return the blocks of those that are not; the caller's
     */
    synchronized Set<BlockIds> await(long lastTask, long end) throws InterruptedException {
      List<TransferTask> asked = new ArrayList<>(open);
      asked.removeIf(dump -> dump.id() > lastTask);
      for (TransferTask dump : asked) {
        long left = end - System.nanoTime();
        while (open.contains(dump) && left > 0) {
          TimeUnit.NANOSECONDS.timedWait(this, left);
          left = end - System.nanoTime();
        }
      }
      asked.retainAll(open);
      Set<BlockIds> pending = new HashSet<>();
      asked.forEach(dump -> dump.collectPending(pending));
      return pending;
    }

    /** Hands over the failures, once. */
    synchronized FlushResult take(long pendingBlocks) {
      FlushResult result = peek(pendingBlocks);
      failed.clear();
      failedCount = 0;
      cause = null;
      return result;
    }

    synchronized FlushResult peek(long pendingBlocks) {
      long[] words = new long[2 * failed.size()];
      int n = 0;
      for (BlockIds id : failed) {
        words[n++] = id.high(0);
        words[n++] = id.low(0);
      }
      return new FlushResult(pendingBlocks, BlockIds.wrap(words), failedCount, cause);
    }
  }
}
