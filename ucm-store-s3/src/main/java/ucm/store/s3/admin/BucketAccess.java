package ucm.store.s3.admin;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import ucm.api.StoreException;
import ucm.store.s3.client.ClientSettings;
import ucm.store.s3.client.CrtObjectClient;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectList;
import ucm.store.s3.client.ObjectList.Listed;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/** A bucket as people use it: each request waits for its answer, and what is refused is an error. Thread-safe. */
final class BucketAccess implements AutoCloseable {

  private static final int TRIES = 4;
  private static final Duration CLOSE = Duration.ofSeconds(5);

  private final ObjectClient client;
  private final ClientSettings settings;
  private final long nanos;

  BucketAccess(ClientSettings settings, long nanos) {
    this.settings = settings;
    this.nanos = nanos;
    this.client =
        new CrtObjectClient(
            settings,
            task -> Thread.ofPlatform().daemon().name("ucm-s3-admin-timer").unstarted(task),
            System::nanoTime);
  }

  String name() {
    return settings.bucket();
  }

  /** Sends a request, once more where no server answered; and takes only what a server did, or that it has none. */
  ObjectReply send(ObjectRequest request) {
    ObjectReply reply = client.send(request, nanos).join();
    for (int i = 1; i < TRIES && isWorthTrying(reply); i++) {
      reply = client.send(request, nanos).join();
    }
    if (!reply.ok() && !reply.isMissing()) {
      throw new StoreException(
          "%s of the bucket %s at %s failed: %s; `ucm doctor` says more"
              .formatted(request, settings.bucket(), settings.endpoints(), reply.describe()));
    }
    return reply;
  }

  private static boolean isWorthTrying(ObjectReply reply) {
    return reply.isSlowDown()
        || reply.end() == ObjectReply.End.BROKEN
        || reply.end() == ObjectReply.End.LATE;
  }

  /**
   * All of an object.
   *
   * @param size as a listing has it
   * @param into gets the bytes; flipped
   */
  ObjectReply get(String key, long size, ByteBuffer into) {
    ObjectReply reply = send(ObjectRequest.get(key, 0, size, new Into(into)));
    into.flip();
    return reply;
  }

  /** The last bytes of an object. */
  ObjectReply tail(String key, long size, ByteBuffer into) {
    long length = Math.min(size, into.capacity());
    ObjectReply reply = send(ObjectRequest.get(key, size - length, length, new Into(into)));
    into.flip();
    return reply;
  }

  /** Takes the body of one answer; begins again when the request is sent once more. */
  private record Into(ByteBuffer bytes) implements ObjectRequest.Sink {

    @Override
    public void begin(ObjectReply head) {
      bytes.clear();
    }

    @Override
    public void accept(ByteBuffer more) {
      if (more.remaining() <= bytes.remaining()) {
        bytes.put(more);
      } else {
        // Longer than it was listed: it was replaced meanwhile, and its checksums will not match.
        bytes.put(more.slice(more.position(), bytes.remaining()));
      }
    }
  }

  /**
   * Lists the objects below a prefix, in the order of their keys.
   *
   * @param visitor returns whether it wants another one
   */
  void list(String prefix, Predicate<Listed> visitor) {
    try {
      var _ = new ObjectList(client, prefix, nanos).each(visitor);
    } catch (StoreException e) {
      throw failed(e);
    }
  }

  /** Removes objects below a prefix, so many at a time as a request takes at the most. */
  void remove(String prefix, List<String> keys) {
    try {
      new ObjectList(client, prefix, nanos).remove(keys);
    } catch (StoreException e) {
      throw failed(e);
    }
  }

  private StoreException failed(StoreException e) {
    return new StoreException(
        "bucket %s at %s: %s; `ucm doctor` says more"
            .formatted(settings.bucket(), settings.endpoints(), e.getMessage()),
        e);
  }

  @Override
  public void close() {
    client.close(CLOSE);
  }
}
