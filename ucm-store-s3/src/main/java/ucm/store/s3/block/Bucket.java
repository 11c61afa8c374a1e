package ucm.store.s3.block;

import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * A bucket that is open, and what is known of its blocks: for all that asks it.
 *
 * @param window of the blocks that are loaded and stored
 * @param workers read memory for dumps
 * @param clock of the deadlines
 * @param refresh of what is loaded
 * @param conditional whether the server knows {@code If-None-Match}, as far as it has said
 */
public record Bucket(
    ObjectClient client,
    ObjectFormat format,
    KnownBlocks known,
    S3Metrics metrics,
    RequestWindow window,
    Executor workers,
    LongSupplier clock,
    BlockRefresh refresh,
    AtomicBoolean conditional) {

  /** Sends a request, which ends by a deadline; its answer is taken on a thread of the client. */
  void ask(ObjectRequest request, long deadlineNanos, Consumer<ObjectReply> answered) {
    var _ = client.send(request, nanosLeft(deadlineNanos)).thenAccept(answered);
  }

  private long nanosLeft(long deadlineNanos) {
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
