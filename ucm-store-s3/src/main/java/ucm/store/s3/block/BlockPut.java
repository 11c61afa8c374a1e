package ucm.store.s3.block;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * Stores one block, unless it is there. That it is there is believed when an object of its size has its
 * metadata; anything else under its key is replaced.
 */
final class BlockPut {

  private static final Logger LOG = LoggerFactory.getLogger(BlockPut.class);
  private static final int CONFLICT = 409;
  private static final int BAD_REQUEST = 400;

  private final Moves moves;
  private final ObjectBody body;
  private final BlockIds id;
  private final String key;
  private final long deadlineNanos;
  private final long removals;
  private final BiConsumer<ShardOutcome, @Nullable StoreException> ended;

  /**
   * A block to be stored.
   *
   * @param ended told once how it ended; from then on the memory of the body is not touched
   */
  BlockPut(
      Moves moves,
      ObjectBody body,
      long deadlineNanos,
      BiConsumer<ShardOutcome, @Nullable StoreException> ended) {
    this.moves = moves;
    this.body = body;
    this.id = body.id;
    this.key = moves.format().key(id.high(0), id.low(0));
    this.deadlineNanos = deadlineNanos;
    this.removals = moves.watcher().removals();
    this.ended = ended;
  }

  void send() {
    send(moves.conditional().get() && !moves.watcher().isDamaged(id));
  }

  private void send(boolean onlyIfAbsent) {
    Map<String, String> headers = new HashMap<>(body.headers);
    if (onlyIfAbsent) {
      headers.put("If-None-Match", "*");
    }
    moves.metrics().putRequests.increment();
    ObjectRequest request = ObjectRequest.put(key, headers, body, moves.format().objectSize());
    var _ =
        moves
            .client()
            .send(request, moves.nanosLeft(deadlineNanos))
            .thenAccept(reply -> answered(reply, onlyIfAbsent));
  }

  private void answered(ObjectReply reply, boolean onlyIfAbsent) {
    if (reply.ok()) {
      moves.metrics().storedBlocks.increment();
      moves.metrics().dumpBytes.add(moves.format().layout().blockSize());
      moves.watcher().stored(id);
      stored();
    } else if (onlyIfAbsent && (reply.isPresent() || reply.status() == CONFLICT)) {
      isItThere();
    } else if (onlyIfAbsent && isUnknownCondition(reply)) {
      if (moves.conditional().getAndSet(false)) {
        LOG.warn(
            "S3: the server does not know If-None-Match ({}): blocks that two engines store at a"
                + " time are stored twice",
            reply.describe());
      }
      send(false);
    } else {
      ended.accept(moves.outcome(reply, deadlineNanos), moves.fault("store", id, reply));
    }
  }

  private static boolean isUnknownCondition(ObjectReply reply) {
    return reply.isNotImplemented()
        || (reply.status() == BAD_REQUEST && "NotImplemented".equals(reply.code()));
  }

  private void isItThere() {
    moves.metrics().headRequests.increment();
    var _ =
        moves
            .client()
            .send(ObjectRequest.head(key), moves.nanosLeft(deadlineNanos))
            .thenAccept(
                reply -> {
                  boolean whole = moves.format().isWhole(reply, id.high(0), id.low(0));
                  if (whole && !ObjectFormat.isBare(reply)) {
                    moves.metrics().presentBlocks.increment();
                    stored();
                  } else if (reply.ok() || reply.isMissing()) {
                    moves.metrics().replacedBlocks.increment();
                    send(false);
                  } else {
                    ended.accept(
                        moves.outcome(reply, deadlineNanos), moves.fault("look for", id, reply));
                  }
                });
  }

  private void stored() {
    moves.watcher().seen(id, removals);
    ended.accept(ShardOutcome.OK, null);
  }
}
