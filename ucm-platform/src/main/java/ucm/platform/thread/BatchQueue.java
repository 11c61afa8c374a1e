package ucm.platform.thread;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;

/**
 * The batches of {@link ShardWorkers}, in the order they came. What changes the queue is called under
 * the lock of its owner; {@link #head}, {@link Cursor} and {@link #ended} are for any thread.
 */
final class BatchQueue {

  /** A batch, and how many of its shards are taken. */
  static final class Cursor {

    final ShardWorkers.Batch batch;

    private final int size;
    private final AtomicInteger next = new AtomicInteger();

    private Cursor(ShardWorkers.Batch batch, int size) {
      this.batch = batch;
      this.size = size;
    }

    /** The next shard; one that {@link #isTaken} when there is none left. */
    int take() {
      return next.getAndIncrement();
    }

    /** Whether a number given by {@link #take} is no shard any more. */
    boolean isTaken(int shard) {
      return shard >= size;
    }

    /** Whether a shard is the last one, or none any more. */
    boolean isLast(int shard) {
      return shard >= size - 1;
    }

    /** Whether shards are left. */
    boolean hasMore() {
      return next.get() < size;
    }
  }

  private final String role;
  private final ShardWorkers.Limits limits;
  private final ArrayDeque<Cursor> waiting = new ArrayDeque<>();
  private final AtomicInteger open = new AtomicInteger();
  private long accepted;
  private boolean closed;
  private volatile @Nullable Cursor head;

  BatchQueue(String role, ShardWorkers.Limits limits) {
    this.role = role;
    this.limits = limits;
  }

  /**
   * Takes a batch in, under the lock.
   *
   * @throws QueueFullException when a bound is reached
   * @throws StoreClosedException after {@link #close}
   */
  void add(ShardWorkers.Batch batch, int size) {
    if (closed) {
      throw new StoreClosedException(role);
    }
    if (waiting.size() >= limits.waitingBatches()) {
      throw new QueueFullException(role + " tasks", waiting.size(), limits.waitingKey());
    }
    // A batch larger than the bound may run alone, or it could never run at all.
    int found = open.get();
    if (found > 0 && (long) found + size > limits.runningShards()) {
      throw new QueueFullException(role + " shards", found, limits.runningKey());
    }
    open.addAndGet(size);
    accepted += size;
    waiting.add(new Cursor(batch, size));
    if (head == null) {
      head = waiting.peek();
    }
  }

  /** Takes no more batches in, under the lock. */
  void close() {
    closed = true;
  }

  /** Whether no batch is left and none will come, under the lock. */
  boolean isOver() {
    return closed && !hasWork();
  }

  /** Drops the head, all of whose shards are taken, under the lock; nothing when it is gone. */
  void advance(Cursor exhausted) {
    if (waiting.peek() == exhausted) {
      waiting.poll();
      head = waiting.peek();
    }
  }

  /** The batch to work on, or null when there is none. */
  @Nullable Cursor head() {
    return head;
  }

  /** Whether there is a batch to work on. */
  boolean hasWork() {
    return head != null;
  }

  /** A shard is done. */
  void ended() {
    open.decrementAndGet();
  }

  /** Shards accepted and not done. */
  int open() {
    return open.get();
  }

  /** Shards done so far, under the lock. */
  long done() {
    return accepted - open.get();
  }
}
