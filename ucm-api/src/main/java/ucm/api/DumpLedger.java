package ucm.api;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Which dumps are not settled, and which blocks failed since the last flush: what {@link Store#flush}
 * asks. Thread-safe.
 */
final class DumpLedger {

  /** More failed blocks than this are counted, not named. */
  static final int MAX_NAMED = 1 << 14;

  private final Runnable onFailure;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition settled = lock.newCondition();
  // Guarded by lock, as is what follows; in order of arrival.
  private final SequencedSet<TransferTask> open = new LinkedHashSet<>();
  private final SequencedSet<BlockIds> failed = new LinkedHashSet<>();
  private long failedCount;
  private @Nullable Throwable cause;

  /**
   * Knows no dump.
   *
   * @param onFailure told of each block that failed, under a lock
   */
  DumpLedger(Runnable onFailure) {
    this.onFailure = onFailure;
  }

  void add(TransferTask dump) {
    lock.lock();
    try {
      open.add(dump);
    } finally {
      lock.unlock();
    }
  }

  /** Forgets a dump, with which all is done. */
  void settle(TransferTask dump) {
    lock.lock();
    try {
      if (open.remove(dump)) {
        settled.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Notes the blocks of a dump that failed; called before the task is seen to have completed. */
  void noteFailures(TransferResult result) {
    BlockIds blocks = result.failedBlocks();
    for (int i = 0; i < blocks.size(); i++) {
      failed(blocks.high(i), blocks.low(i), result.cause());
    }
  }

  /** Notes a block that will not become durable; the first fault is kept. */
  void failed(long high, long low, @Nullable Throwable fault) {
    lock.lock();
    try {
      if (isNew(BlockIds.of(high, low), fault)) {
        onFailure.run();
      }
    } finally {
      lock.unlock();
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
  void takeBack(FlushResult untold) {
    BlockIds ids = untold.failedBlocks();
    lock.lock();
    try {
      cause = untold.cause() == null ? cause : untold.cause();
      failedCount += untold.failedCount() - ids.size();
      for (int i = 0; i < ids.size(); i++) {
        boolean _ = isNew(BlockIds.of(ids.high(i), ids.low(i)), null);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until the dumps up to a task are settled.
   *
   * @param lastTask the number of that task
   * @param end until when, of {@link System#nanoTime}
   * @return the blocks of those that are not; the caller's
   */
  Set<BlockIds> await(long lastTask, long end) throws InterruptedException {
    Set<BlockIds> pending = new HashSet<>();
    lock.lock();
    try {
      List<TransferTask> asked = new ArrayList<>(open);
      asked.removeIf(dump -> dump.id() > lastTask);
      for (TransferTask dump : asked) {
        long left = end - System.nanoTime();
        while (open.contains(dump) && left > 0) {
          left = settled.awaitNanos(left);
        }
      }
      asked.retainAll(open);
      asked.forEach(dump -> dump.collectPending(pending));
      return pending;
    } finally {
      lock.unlock();
    }
  }

  /** Hands over the failures, once. */
  FlushResult take(long pendingBlocks) {
    lock.lock();
    try {
      FlushResult result = peek(pendingBlocks);
      failed.clear();
      failedCount = 0;
      cause = null;
      return result;
    } finally {
      lock.unlock();
    }
  }

  /** Shows the failures. */
  FlushResult peek(long pendingBlocks) {
    lock.lock();
    try {
      long[] words = new long[2 * failed.size()];
      int n = 0;
      for (BlockIds id : failed) {
        words[n++] = id.high(0);
        words[n++] = id.low(0);
      }
      return new FlushResult(pendingBlocks, BlockIds.wrap(words), failedCount, cause);
    } finally {
      lock.unlock();
    }
  }
}
