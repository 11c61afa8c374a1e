package ucm.store.s3;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockLayout;
import ucm.api.config.StoreConfig;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.store.s3.client.ObjectRequest.Method;

/** Objects of a bucket, past any store. */
final class RawObjects implements AutoCloseable {

  final ObjectClient client;

  /** Of the bucket that a store with such settings has. */
  RawObjects(Map<String, Object> settings) {
    this(settings, Optional.empty());
  }

  /** With parts as a store of a layout has. */
  RawObjects(Map<String, Object> settings, Optional<BlockLayout> layout) {
    client =
        new ObjectClient(
            S3Config.client(StoreConfig.of(settings), layout).orElseThrow(),
            Thread.ofPlatform().daemon().factory(),
            System::nanoTime);
  }

  ObjectReply send(ObjectRequest request) {
    return client.send(request, TimeUnit.MINUTES.toNanos(2)).join();
  }

  private ObjectReply sendWell(ObjectRequest request) {
    ObjectReply reply = send(request);
    if (!reply.ok()) {
      throw new IllegalStateException(request + ": " + reply.describe());
    }
    return reply;
  }

  void makeBucket() {
    sendWell(new ObjectRequest(Method.PUT, "", "", Map.of(), null, null, 0));
  }

  ObjectReply head(String key) {
    return sendWell(ObjectRequest.head(key));
  }

  byte[] get(String key) {
    ByteBuffer into = ByteBuffer.allocate((int) head(key).objectSize());
    sendWell(ObjectRequest.get(key, 0, into.capacity(), into::put));
    return into.array();
  }

  void put(String key, byte[] bytes, Map<String, String> headers) {
    sendWell(
        ObjectRequest.put(
            key, headers, ObjectRequest.Source.of(ByteBuffer.wrap(bytes)), bytes.length));
  }

  /** Flips a bit of an object, and leaves its metadata. */
  void flip(String key, int at) {
    byte[] bytes = get(key);
    bytes[at] ^= 1;
    put(key, bytes, Map.of("x-amz-meta-ucm", head(key).header("x-amz-meta-ucm")));
  }

  void delete(String key) {
    sendWell(ObjectRequest.delete(key));
  }

  @Override
  public void close() {
    client.close(Duration.ofSeconds(10));
  }
}
