package ucm.store.s3.block;

import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;

/**
 * What moves of blocks have in common.
 *
 * @param workers read memory for dumps
 * @param clock of the deadlines
 * @param refresh of what is loaded
 * @param conditional whether the server knows {@code If-None-Match}, as far as it has said
 */
public record Moves(
    ObjectClient client,
    ObjectFormat format,
    BlockWatcher watcher,
    S3Metrics metrics,
    RequestWindow window,
    Executor workers,
    LongSupplier clock,
    BlockRefresh refresh,
    AtomicBoolean conditional) {

  /** Is told what moves find out about blocks. */
  public interface BlockWatcher {

    /** To be handed back with what an answer says. */
    long removals();

    /** A block is there. */
    void seen(BlockIds id, long since);

    /** A block is not there any more. */
    void forget(BlockIds id);

    /** What is there of a block cannot be used. */
    void damaged(BlockIds id);

    /** A block was stored, whatever was there before. */
    void stored(BlockIds id);

    /** Whether what is there of a block cannot be used. */
    boolean isDamaged(BlockIds id);
  }

  /** Moves of blocks with some requests at once. */
  public static Moves of(
      ObjectClient client,
      ObjectFormat format,
      BlockWatcher watcher,
      S3Metrics metrics,
      int concurrency,
      Executor workers,
      LongSupplier clock,
      BlockRefresh refresh) {
    return new Moves(
        client,
        format,
        watcher,
        metrics,
        new RequestWindow(concurrency),
        workers,
        clock,
        refresh,
        new AtomicBoolean(true));
  }

  /** How many moves may be under way at present. */
  public int width() {
    return window.width();
  }

  long nanosLeft(long deadlineNanos) {
    return deadlineNanos - clock.getAsLong();
  }

  /** How a shard ends whose request did not go well. */
  ShardOutcome outcome(ObjectReply reply, long deadlineNanos) {
    return switch (reply.end()) {
      case REFUSED -> ShardOutcome.REFUSED;
      case LATE -> nanosLeft(deadlineNanos) <= 0 ? ShardOutcome.EXPIRED : ShardOutcome.FAILED;
      default -> ShardOutcome.FAILED;
    };
  }

  /** Says what was asked for in vain. */
  StoreException fault(String what, BlockIds id, ObjectReply reply) {
    metrics.failedRequests.increment();
    return new StoreException(
        "S3 did not %s block %s, object %s: %s"
            .formatted(what, id.hex(0), format.key(id.high(0), id.low(0)), reply.describe()));
  }
}
