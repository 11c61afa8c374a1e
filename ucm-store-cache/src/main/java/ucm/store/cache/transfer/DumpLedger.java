package ucm.store.cache.transfer;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;

/**
 * Which dumps still have shards that the next stage has not taken over, and which blocks failed on the
 * way; what {@code flush} asks.
 */
public final class DumpLedger {

  /** More failed blocks than this are counted, not named. */
  static final int MAX_NAMED = 4096;

  private final LongSupplier clock;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition settled = lock.newCondition();
  // Guarded by lock; in order of arrival.
  private final SequencedSet<DumpTask> open = new LinkedHashSet<>();
  private final SequencedSet<BlockIds> failed = new LinkedHashSet<>();
  private long failedCount;
  private @Nullable Throwable cause;

  DumpLedger(LongSupplier clock) {
    this.clock = clock;
  }

  /** A dump was accepted. */
  void add(DumpTask dump) {
    lock.lock();
    try {
      open.add(dump);
    } finally {
      lock.unlock();
    }
  }

  /** All shards of a dump are with the next stage, or failed, or needed no move. */
  void remove(DumpTask dump) {
    lock.lock();
    try {
      open.remove(dump);
      settled.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * A block will not become durable.
   *
   * @param fault why, or null; the first one is kept
   */
  void failed(long high, long low, @Nullable Throwable fault) {
    lock.lock();
    try {
      note(BlockIds.of(high, low), fault);
    } finally {
      lock.unlock();
    }
  }

  /** Notes the failures of a result again, as its reader was not told after all. */
  void takeBack(FlushResult untold) {
    BlockIds ids = untold.failedBlocks();
    lock.lock();
    try {
      cause = untold.cause() == null ? cause : untold.cause();
      failedCount += untold.failedCount() - ids.size();
      for (int i = 0; i < ids.size(); i++) {
        note(BlockIds.of(ids.high(i), ids.low(i)), null);
      }
    } finally {
      lock.unlock();
    }
  }

  private void note(BlockIds id, @Nullable Throwable fault) {
    if (failed.contains(id)) {
      return;
    }
    failedCount++;
    if (failed.size() < MAX_NAMED) {
      failed.add(id);
    }
    cause = cause == null ? fault : cause;
  }

  /**
   * Waits for the dumps accepted so far.
   *
   * @param deadlineNanos until when, by the clock
   * @return how many of their blocks are pending then
   */
  long await(long deadlineNanos) throws InterruptedException {
    lock.lock();
    try {
      List<DumpTask> asked = new ArrayList<>(open);
      for (DumpTask dump : asked) {
        long remaining = deadlineNanos - clock.getAsLong();
        while (open.contains(dump) && remaining > 0) {
          long _ = settled.awaitNanos(remaining);
          remaining = deadlineNanos - clock.getAsLong();
        }
      }
      long pending = 0;
      for (DumpTask dump : asked) {
        pending += open.contains(dump) ? dump.pendingBlocks() : 0;
      }
      return pending;
    } finally {
      lock.unlock();
    }
  }

  /** The failures, which are forgotten by this, beside so many blocks that are pending. */
  FlushResult take(long pending) {
    lock.lock();
    try {
      FlushResult result = new FlushResult(pending, named(), failedCount, cause);
      failed.clear();
      failedCount = 0;
      cause = null;
      return result;
    } finally {
      lock.unlock();
    }
  }

  /** Dumps that are not settled. */
  public int open() {
    lock.lock();
    try {
      return open.size();
    } finally {
      lock.unlock();
    }
  }

  private BlockIds named() {
    long[] words = new long[2 * failed.size()];
    int i = 0;
    for (BlockIds id : failed) {
      words[i++] = id.high(0);
      words[i++] = id.low(0);
    }
    return BlockIds.wrap(words);
  }
}
