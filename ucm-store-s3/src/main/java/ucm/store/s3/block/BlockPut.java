package ucm.store.s3.block;

import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * Stores one block, unless it is there. That it is there is believed when an object of its size has its
 * metadata; anything else under its key is replaced.
 *
 * @param removals how often blocks were removed before
 * @param ended told once how it ended; from then on the memory of the body is not touched
 */
record BlockPut(
    Bucket bucket,
    ObjectBody body,
    long deadlineNanos,
    long removals,
    BiConsumer<ShardOutcome, @Nullable StoreException> ended) {

  private static final Logger LOG = LoggerFactory.getLogger(BlockPut.class);
  private static final int CONFLICT = 409;
  private static final int BAD_REQUEST = 400;

  private String key() {
    return bucket.format().key(body.id.high(0), body.id.low(0));
  }

  void send() {
    send(bucket.conditional().get() && !bucket.known().isDamaged(body.id));
  }

  private void send(boolean onlyIfAbsent) {
    Map<String, String> headers = new HashMap<>(body.headers);
    if (onlyIfAbsent) {
      headers.put("If-None-Match", "*");
    }
    bucket.metrics().putRequests.increment();
    ObjectRequest request = ObjectRequest.put(key(), headers, body, bucket.format().objectSize());
    bucket.ask(request, deadlineNanos, reply -> answered(reply, onlyIfAbsent));
  }

  private void answered(ObjectReply reply, boolean onlyIfAbsent) {
    if (reply.ok()) {
      bucket.metrics().storedBlocks.increment();
      bucket.metrics().dumpBytes.add(bucket.format().layout().blockSize());
      bucket.known().stored(body.id);
      stored();
    } else if (onlyIfAbsent && (reply.isPresent() || reply.status() == CONFLICT)) {
      isItThere();
    } else if (onlyIfAbsent && isUnknownCondition(reply)) {
      if (bucket.conditional().getAndSet(false)) {
        LOG.warn(
            "S3: the server does not know If-None-Match ({}): blocks that two engines store at a"
                + " time are stored twice",
            reply.describe());
      }
      send(false);
    } else {
      ended.accept(bucket.outcome(reply, deadlineNanos), bucket.fault("store", body.id, reply));
    }
  }

  private static boolean isUnknownCondition(ObjectReply reply) {
    return reply.isNotImplemented()
        || (reply.status() == BAD_REQUEST && "NotImplemented".equals(reply.code()));
  }

  private void isItThere() {
    bucket.metrics().headRequests.increment();
    bucket.ask(ObjectRequest.head(key()), deadlineNanos, this::foundThere);
  }

  private void foundThere(ObjectReply reply) {
    boolean whole = bucket.format().isWhole(reply, body.id.high(0), body.id.low(0));
    if (whole && !ObjectFormat.isBare(reply)) {
      bucket.metrics().presentBlocks.increment();
      stored();
    } else if (reply.ok() || reply.isMissing()) {
      bucket.metrics().replacedBlocks.increment();
      send(false);
    } else {
      ended.accept(bucket.outcome(reply, deadlineNanos), bucket.fault("look for", body.id, reply));
    }
  }

  private void stored() {
    bucket.known().seen(body.id, removals);
    ended.accept(ShardOutcome.OK, null);
  }
}
