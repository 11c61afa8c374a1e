package ucm.store.s3.client;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequestBodyStream;
import software.amazon.awssdk.crt.s3.S3BorrowedBuffer;
import software.amazon.awssdk.crt.s3.S3BorrowedBufferDelivery;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestResponseHandler;
import ucm.store.s3.client.ObjectReply.End;

/**
 * One request on its way through the CRT. It ends once: by the CRT, at its time, or when the client is closed.
 * The CRT may go on for a while after that, so body memory is touched under this object's lock, and not any
 * more when it has ended. Nothing is thrown into the CRT, which would lose it.
 */
final class CrtExchange
    implements S3MetaRequestResponseHandler, S3BorrowedBufferDelivery, HttpRequestBodyStream {

  private static final Logger LOG = LoggerFactory.getLogger(CrtExchange.class);
  private static final Pattern CODE = Pattern.compile("<Code>([A-Za-z0-9]{1,64})</Code>");
  private static final String SLOW_DOWN = "AWS_ERROR_S3_SLOW_DOWN";
  private static final String INTERNAL_ERROR = "AWS_ERROR_S3_INTERNAL_ERROR";

  final ObjectRequest request;
  final Endpoint endpoint;
  final CompletableFuture<ObjectReply> reply = new CompletableFuture<>();
  // When the CRT is done with it, which may be later.
  final CompletableFuture<Void> returnedByCrt = new CompletableFuture<>();
  private final long maxNanos;
  private final long startNanos = System.nanoTime();
  private final Object handle = new Object();
  // Guarded by handle.
  private @Nullable S3MetaRequest call;
  private boolean returned;
  // Guarded by this, as is what follows.
  private boolean ended;
  private boolean begun;
  private int status;
  private Map<String, String> headers = Map.of();
  private @Nullable Throwable fault;
  private long sent;

  /** An exchange that is not started. */
  CrtExchange(ObjectRequest request, Endpoint endpoint, long maxNanos) {
    this.request = request;
    this.endpoint = endpoint;
    this.maxNanos = maxNanos;
  }

  /** What the CRT made of it; it may have ended already. */
  void started(S3MetaRequest made) {
    synchronized (handle) {
      call = made;
    }
    if (reply.isDone()) {
      cancel();
    }
    closeReturned();
  }

  /** Has the CRT drop it, unless it is done with it. */
  private void cancel() {
    synchronized (handle) {
      if (call != null && !returned) {
        call.cancel();
      }
    }
  }

  /** Gives back what the CRT made, when it is done with it. */
  private void closeReturned() {
    synchronized (handle) {
      if (call != null && returned) {
        call.close();
        call = null;
      }
    }
  }

  /** It was not taken by the CRT. */
  void notStarted(ObjectReply why) {
    end(why);
    returnedByCrt.complete(null);
  }

  /** Whether an answer has begun. */
  synchronized boolean hasBegun() {
    return begun;
  }

  /** Nanoseconds that are left of its time. */
  long nanosLeft() {
    return maxNanos - (System.nanoTime() - startNanos);
  }

  /** Ends it without an answer, and has the CRT drop it. */
  void abort(End why, String sentence) {
    end(ObjectReply.none(why, sentence));
    cancel();
  }

  private void end(ObjectReply how) {
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
    }
    endpoint.ended(request, how);
    reply.complete(how);
  }

  // ---- called by the CRT

  @Override
  public void onResponseHeaders(int answered, HttpHeader[] given) {
    try {
      Map<String, String> read = new HashMap<>();
      for (HttpHeader header : given) {
        read.put(header.getName().toLowerCase(Locale.ROOT), header.getValue());
      }
      synchronized (this) {
        begun = true;
        status = answered;
        headers = read;
      }
    } catch (RuntimeException | Error e) {
      failed(e);
    }
  }

  @Override
  public int onResponseBodyBorrowed(S3BorrowedBuffer buffer, long start, long end) {
    try (buffer) {
      take(buffer.asByteBuffer());
    }
    return (int) (end - start);
  }

  /** Of requests that are no GET of an object. */
  @Override
  public int onResponseBody(ByteBuffer bytes, long start, long end) {
    int size = bytes.remaining();
    take(bytes);
    return size;
  }

  private synchronized void take(ByteBuffer bytes) {
    ObjectRequest.Sink sink = request.sink();
    if (ended || fault != null || sink == null) {
      return;
    }
    try {
      if (sent == 0) {
        sink.begin(new ObjectReply(End.ANSWERED, status, "", headers));
      }
      sent += bytes.remaining();
      sink.accept(bytes);
    } catch (RuntimeException | Error e) {
      failed(e);
    }
  }

  @Override
  public synchronized boolean sendRequestBody(ByteBuffer into) {
    ObjectRequest.Source source = request.source();
    if (ended || fault != null || source == null) {
      // It is being dropped; what is sent is of another length than was announced.
      return true;
    }
    try {
      int before = into.position();
      source.copy(sent, into);
      sent += into.position() - before;
    } catch (RuntimeException | Error e) {
      failed(e);
      return true;
    }
    return sent >= request.bytes();
  }

  @Override
  public synchronized boolean resetPosition() {
    sent = 0;
    return true;
  }

  @Override
  public long getLength() {
    return request.bytes();
  }

  @Override
  public void onFinished(S3FinishedResponseContext context) {
    ObjectReply how;
    try {
      how = read(context);
    } catch (RuntimeException | Error e) {
      how = ObjectReply.none(End.BROKEN, nameOf(e));
    }
    synchronized (handle) {
      // From here on its handle may be closed, and must not be used.
      returned = true;
    }
    try {
      end(how);
    } catch (RuntimeException | Error e) {
      // What an answer set off; the request itself has ended.
      LOG.error("S3: the answer to {} was not dealt with", request, e);
    } finally {
      closeReturned();
      returnedByCrt.complete(null);
    }
  }

  private synchronized ObjectReply read(S3FinishedResponseContext context) {
    if (fault != null) {
      return ObjectReply.none(End.BROKEN, nameOf(fault));
    }
    int error = context.getErrorCode();
    int answered = context.getResponseStatus();
    if (error == 0) {
      return new ObjectReply(End.ANSWERED, answered == 0 ? status : answered, "", headers);
    }
    String name = String.valueOf(CRT.awsErrorName(error));
    if (answered == 0) {
      // Answers that it repeats a request for come without their status.
      answered =
          switch (name) {
            case SLOW_DOWN -> ObjectReply.SLOW_DOWN;
            case INTERNAL_ERROR -> ObjectReply.INTERNAL_ERROR;
            default -> 0;
          };
    }
    if (answered >= ObjectReply.OK && answered <= ObjectReply.PARTIAL) {
      // It began well and broke off.
      return ObjectReply.none(End.BROKEN, name);
    }
    HttpHeader[] given = context.getErrorHeaders();
    if (given != null) {
      onResponseHeaders(answered, given);
    }
    return answered == 0
        ? ObjectReply.none(End.BROKEN, name)
        : new ObjectReply(End.ANSWERED, answered, code(context.getErrorPayload(), name), headers);
  }

  /** The server's own word; the rest of its answer may have what is secret. */
  private static String code(byte @Nullable [] body, String otherwise) {
    if (body == null) {
      return otherwise;
    }
    Matcher found = CODE.matcher(new String(body, StandardCharsets.UTF_8));
    return found.find() ? found.group(1) : otherwise;
  }

  private void failed(Throwable why) {
    synchronized (this) {
      fault = fault == null ? why : fault;
    }
    LOG.error("S3: the body of {} was not moved", request, why);
    cancel();
  }

  private static String nameOf(Throwable why) {
    return why.getClass().getSimpleName();
  }
}
