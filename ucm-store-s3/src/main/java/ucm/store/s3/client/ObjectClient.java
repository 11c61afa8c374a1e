package ucm.store.s3.client;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * Requests to one bucket. Every request ends, and none by an exception: not when a server answers nonsense,
 * nothing, or half of it. Thread-safe.
 */
public interface ObjectClient {

  /**
   * Sends a request. Does not block.
   *
   * @param nanos how long it may take; when these are over it is aborted
   * @return its answer; completed on a thread of the client, never exceptionally. By then the body's memory
   *     is not touched any more
   */
  CompletableFuture<ObjectReply> send(ObjectRequest request, long nanos);

  /** Aborts what is under way, and gives back what the client has; takes no longer than the time given. */
  void close(Duration timeout);
}
