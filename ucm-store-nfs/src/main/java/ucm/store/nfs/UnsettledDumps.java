package ucm.store.nfs;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import ucm.api.BlockIds;

/**
 * Dumps that the files do not have all shards of. The thread that has begun a shard settles it, when
 * the files have it or its failure is recorded: a dump that is not here is known to them. Thread-safe.
 */
final class UnsettledDumps {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  // Guarded by lock, as is how many shards of a dump are settled.
  private final LinkedHashSet<StagedTransfer> works = new LinkedHashSet<>();

  /** Takes one up of which no shard is settled. */
  void add(StagedTransfer staged) {
    lock.lock();
    try {
      works.add(staged);
    } finally {
      lock.unlock();
    }
  }

  /** Some shards, begun by the caller, are the files' now, or their failure is recorded. */
  void settled(StagedTransfer staged, int shards) {
    lock.lock();
    try {
      staged.settled += shards;
      if (staged.settled == staged.transfer.shardCount()) {
        works.remove(staged);
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until those that are here now are settled.
   *
   * @return how many blocks are not
   */
  long await(Duration timeout) throws InterruptedException {
    long left = timeout.toNanos();
    lock.lock();
    try {
      List<StagedTransfer> before = new ArrayList<>(works);
      while (!before.isEmpty() && left > 0) {
        left = changed.awaitNanos(left);
        before.retainAll(works);
      }
      return distinctBlocks(before);
    } finally {
      lock.unlock();
    }
  }

  private static long distinctBlocks(List<StagedTransfer> works) {
    Set<BlockIds> blocks = new LinkedHashSet<>();
    for (StagedTransfer staged : works) {
      BlockIds ids = staged.transfer.ids();
      for (int i = 0; i < ids.size(); i++) {
        blocks.add(ids.slice(i, i + 1));
      }
    }
    return blocks.size();
  }
}
