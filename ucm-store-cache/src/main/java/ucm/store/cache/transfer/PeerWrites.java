package ucm.store.cache.transfer;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.store.cache.pool.SlotDirectory;

/**
 * Blocks that this worker was asked to dump and did not, because another worker that shares the buffer
 * brings them to the next stage. {@code flush} waits for them too: it asks the next stage whether
 * they are durable. One that is not any more in
 * the buffer as that worker's, and does not become durable within a moment, has failed.
 *
 * <p>Bounded: of more than {@value #MAX_BLOCKS} between two flushes the first ones are forgotten.
 */
final class PeerWrites {

  private static final int MAX_BLOCKS = 1 << 16;
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  // The next stage may commit a block a moment after its writer has let it go.
  private static final long GONE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SlotDirectory pool;
  private final LongSupplier clock;
  private final ReentrantLock lock = new ReentrantLock();
  // Guarded by lock; each with the time when it was first seen gone, if it is.
  private final SequencedMap<BlockIds, Optional<Long>> blocks = new LinkedHashMap<>();

  PeerWrites(SlotDirectory pool, LongSupplier clock) {
    this.pool = pool;
    this.clock = clock;
  }

  /** Another worker brings a block. */
  void add(long high, long low) {
    BlockIds id = BlockIds.of(high, low);
    lock.lock();
    try {
      blocks.put(id, Optional.empty());
      if (blocks.size() > MAX_BLOCKS) {
        blocks.pollFirstEntry();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until all blocks added so far are durable, or have failed.
   *
   * @param deadlineNanos until when, by the clock
   */
  FlushResult await(Store next, long deadlineNanos) throws InterruptedException {
    List<BlockIds> waiting = copy();
    List<BlockIds> gone = List.of();
    while (!waiting.isEmpty()) {
      // First: one that is gone by now was durable before it went, or will be in a moment, or
      // never.
      Set<BlockIds> absent = absent(waiting);
      waiting = notDurable(next, waiting);
      long now = clock.getAsLong();
      gone = goneForLong(waiting, absent, now);
      if (gone.size() == waiting.size() || now - deadlineNanos >= 0) {
        break;
      }
      LockSupport.parkNanos(Math.min(POLL_NANOS, deadlineNanos - now));
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
    }
    forget(gone);
    StoreException cause =
        gone.isEmpty()
            ? null
            : new StoreException(
                "another worker that shares the buffer was to bring the block to "
                    + next.name()
                    + ", and failed or died: dump it again");
    long[] words = new long[2 * gone.size()];
    for (int i = 0; i < gone.size(); i++) {
      words[2 * i] = gone.get(i).high(0);
      words[2 * i + 1] = gone.get(i).low(0);
    }
    return new FlushResult(waiting.size() - gone.size(), BlockIds.wrap(words), gone.size(), cause);
  }

  private List<BlockIds> copy() {
    lock.lock();
    try {
      return new ArrayList<>(blocks.keySet());
    } finally {
      lock.unlock();
    }
  }

  private List<BlockIds> notDurable(Store next, List<BlockIds> asked) {
    List<BlockIds> durable = new ArrayList<>();
    List<BlockIds> left = new ArrayList<>();
    for (BlockIds id : asked) {
      BitSet answer = next.durable(id);
      (answer.get(0) ? durable : left).add(id);
    }
    forget(durable);
    return known(left);
  }

  /** Those of some blocks that another flush has not told of meanwhile. */
  private List<BlockIds> known(List<BlockIds> ids) {
    lock.lock();
    try {
      return ids.stream().filter(blocks::containsKey).toList();
    } finally {
      lock.unlock();
    }
  }

  private void forget(List<BlockIds> ids) {
    lock.lock();
    try {
      ids.forEach(blocks::remove);
    } finally {
      lock.unlock();
    }
  }

  /** Those of some blocks that are absent, and have been for longer than they may. */
  private List<BlockIds> goneForLong(List<BlockIds> ids, Set<BlockIds> absent, long now) {
    List<BlockIds> gone = new ArrayList<>();
    lock.lock();
    try {
      for (BlockIds id : ids) {
        if (!absent.contains(id)) {
          blocks.replace(id, Optional.empty());
          continue;
        }
        long since = blocks.getOrDefault(id, Optional.empty()).orElse(now);
        blocks.replace(id, Optional.of(since));
        if (now - since > GONE_NANOS) {
          gone.add(id);
        }
      }
    } finally {
      lock.unlock();
    }
    return gone;
  }

  /** Those of some blocks that are not in the buffer as another worker's. */
  private Set<BlockIds> absent(List<BlockIds> ids) {
    Set<BlockIds> absent = new HashSet<>();
    for (BlockIds id : ids) {
      if (!pool.isDumpedElsewhere(id.high(0), id.low(0))) {
        absent.add(id);
      }
    }
    return absent;
  }
}
