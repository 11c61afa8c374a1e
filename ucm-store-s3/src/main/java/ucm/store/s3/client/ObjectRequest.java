package ucm.store.s3.client;

import java.nio.ByteBuffer;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What is asked of a bucket.
 *
 * @param key the object; empty for the bucket itself
 * @param query what follows the question mark, encoded; empty for none
 * @param headers beside those that the client sets itself
 * @param source the body to be sent, or null
 * @param sink takes the body of a good answer, or null
 * @param bytes of the body, either way: so much is under way
 */
public record ObjectRequest(
    Method method,
    String key,
    String query,
    Map<String, String> headers,
    @Nullable Source source,
    @Nullable Sink sink,
    long bytes) {

  /** How a body is asked for or sent. */
  public enum Method {
    DELETE,
    GET,
    HEAD,
    POST,
    PUT
  }

  /** A body to be sent. Called by one thread at a time, and not any more when the request has ended. */
  public interface Source {

    /** Copies bytes, as many as there is room for and are left; from the start when that is asked for. */
    void copy(long offset, ByteBuffer into);

    /** Some bytes, from 0 to the limit. */
    static Source of(ByteBuffer bytes) {
      return (offset, into) -> {
        int size = Math.min(into.remaining(), bytes.limit() - (int) offset);
        into.put(bytes.slice((int) offset, size));
      };
    }
  }

  /** Takes an answer's body. Called by one thread at a time, and not any more when the request has ended. */
  public interface Sink {

    /** Called before the first bytes of a good answer. */
    default void begin(ObjectReply head) {}

    /** Takes the next bytes, which are the client's again when this returns. */
    void accept(ByteBuffer bytes);

    /** Puts it into some memory, as much as there is room for; begins again when the request is sent once more. */
    static Sink into(ByteBuffer memory) {
      return new Sink() {
        @Override
        public void begin(ObjectReply head) {
          memory.clear();
        }

        @Override
        public void accept(ByteBuffer bytes) {
          // Longer than it was listed when the object was replaced since.
          int size = Math.min(bytes.remaining(), memory.remaining());
          memory.put(bytes.slice(bytes.position(), size));
        }
      };
    }
  }

  /** Asks for an object's size and metadata. */
  public static ObjectRequest head(String key) {
    return new ObjectRequest(Method.HEAD, key, "", Map.of(), null, null, 0);
  }

  /** Asks for some bytes of an object. */
  public static ObjectRequest get(String key, long offset, long length, Sink sink) {
    String range = "bytes=" + offset + "-" + (offset + length - 1);
    return new ObjectRequest(Method.GET, key, "", Map.of("Range", range), null, sink, length);
  }

  /** Stores an object. */
  public static ObjectRequest put(
      String key, Map<String, String> headers, Source source, long length) {
    return new ObjectRequest(Method.PUT, key, "", headers, source, null, length);
  }

  /** Removes an object. */
  public static ObjectRequest delete(String key) {
    return new ObjectRequest(Method.DELETE, key, "", Map.of(), null, null, 0);
  }

  /** Asks the bucket a question. */
  public static ObjectRequest ask(String query, Sink sink) {
    return new ObjectRequest(Method.GET, "", query, Map.of(), null, sink, 0);
  }

  /** The same, with something that takes the body of a good answer. */
  public ObjectRequest into(Sink taker) {
    return new ObjectRequest(method, key, query, headers, source, taker, bytes);
  }

  @Override
  public String toString() {
    return method + " " + (key.isEmpty() ? "of the bucket" : key);
  }
}
