package ucm.store.s3.client;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.CrtResource;
import software.amazon.awssdk.crt.auth.credentials.CredentialsProvider;
import software.amazon.awssdk.crt.auth.credentials.DefaultChainCredentialsProvider.DefaultChainCredentialsProviderBuilder;
import software.amazon.awssdk.crt.auth.signing.AwsSigningConfig;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpRequest;
import software.amazon.awssdk.crt.io.ClientBootstrap;
import software.amazon.awssdk.crt.io.EventLoopGroup;
import software.amazon.awssdk.crt.io.ExponentialBackoffRetryOptions;
import software.amazon.awssdk.crt.io.HostResolver;
import software.amazon.awssdk.crt.io.StandardRetryOptions;
import software.amazon.awssdk.crt.io.TlsContext;
import software.amazon.awssdk.crt.io.TlsContextOptions;
import software.amazon.awssdk.crt.s3.S3Client;
import software.amazon.awssdk.crt.s3.S3ClientOptions;
import software.amazon.awssdk.crt.s3.S3DirectBufferPoolOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions.MetaRequestType;
import ucm.store.s3.client.ObjectReply.End;
import ucm.store.s3.client.ObjectRequest.Method;

/**
 * Requests to one bucket. Every request ends, and none by an exception: not when a server answers nonsense,
 * nothing, or half of it. Thread-safe.
 *
 * <p>The AWS Common Runtime makes them: connections, TLS, signatures, the standard chain of credentials, two
 * retries with jitter as long as few requests need them, and bodies that stay outside the heap. What is here
 * beside that is the time of a request, and the choice of an endpoint.
 */
public final class ObjectClient {

  private static final Logger LOG = LoggerFactory.getLogger(ObjectClient.class);
  private static final int MOST_LOOPS = 4;
  private static final int RETRIES = 2;
  private static final int RETRY_SCALE_MS = 25;
  // What the pool of the CRT takes at the least; and the room for requests whose answers are being
  // read.
  private static final long LEAST_PART = 1 << 20;
  private static final long LEAST_POOL = 64 << 20;
  // A PUT is answered when its body is there: so many bytes have a second, as others use the same
  // link.
  private static final long SLOWEST_PUT = 1 << 20;

  private final ClientSettings settings;
  private final List<Endpoint> endpoints = new ArrayList<>();
  // In the order in which they are made; closed in the other.
  private final Deque<CrtResource> resources = new ArrayDeque<>();
  private final AwsSigningConfig signing;
  private final EventLoopGroup loops;
  private final ScheduledThreadPoolExecutor timer;
  // Each adds itself before it looks whether this is closed.
  private final Set<CrtExchange> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * A client; connections are made when they are needed.
   *
   * @param threads makes the thread of the deadlines
   * @param clock for the pauses of endpoints
   */
  public ObjectClient(ClientSettings settings, ThreadFactory threads, LongSupplier clock) {
    this.settings = settings;
    boolean made = false;
    timer = new ScheduledThreadPoolExecutor(1, threads);
    timer.setRemoveOnCancelPolicy(true);
    timer.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    // Else it answers nothing more from a signal on, and a close then waits for it in vain.
    CRT.acquireShutdownRef();
    try {
      int processors = Runtime.getRuntime().availableProcessors();
      loops = keep(new EventLoopGroup(Math.clamp(processors, 1, MOST_LOOPS)));
      HostResolver resolver = keep(new HostResolver(loops));
      ClientBootstrap bootstrap = keep(new ClientBootstrap(loops, resolver));
      CredentialsProvider credentials =
          keep(new DefaultChainCredentialsProviderBuilder().withClientBootstrap(bootstrap).build());
      signing = keep(AwsSigningConfig.getDefaultS3SigningConfig(settings.region(), credentials));
      S3ClientOptions options = options(bootstrap);
      for (URI uri : settings.endpoints()) {
        String port = uri.getPort() < 0 ? "" : ":" + uri.getPort();
        String bucket = settings.pathStyle() ? "" : settings.bucket() + ".";
        String host = bucket + uri.getHost() + port;
        URI whole = URI.create(uri.getScheme() + "://" + host);
        // One for each, as the CRT takes servers of one name for one server, whatever their ports.
        endpoints.add(new Endpoint(whole, host, keep(new S3Client(options)), clock));
      }
      made = true;
    } finally {
      if (!made) {
        close(Duration.ZERO);
      }
    }
  }

  private <T extends CrtResource> T keep(T made) {
    resources.push(made);
    return made;
  }

  private S3ClientOptions options(ClientBootstrap bootstrap) {
    long part = Math.max(LEAST_PART, settings.partBytes());
    S3ClientOptions options =
        new S3ClientOptions()
            .withRegion(settings.region())
            .withClientBootstrap(bootstrap)
            .withSigningConfig(signing)
            .withMaxConnections(settings.connections())
            .withConnectTimeoutMs((int) TimeUnit.NANOSECONDS.toMillis(settings.firstByteNanos()))
            .withComputeContentMd5(false)
            .withPartSize(part)
            .withDirectBufferPoolOptions(
                S3DirectBufferPoolOptions.elastic(
                    part, Math.max(LEAST_POOL, settings.connections() * part)))
            .withStandardRetryOptions(
                new StandardRetryOptions()
                    .withBackoffRetryOptions(
                        new ExponentialBackoffRetryOptions()
                            .withMaxRetries(RETRIES)
                            .withBackoffScaleFactorMS(RETRY_SCALE_MS)));
    if (settings.endpoints().stream().anyMatch(uri -> "https".equals(uri.getScheme()))) {
      TlsContextOptions tls = keep(TlsContextOptions.createDefaultClient());
      String authorities = settings.caFile();
      if (authorities != null) {
        tls.overrideDefaultTrustStoreFromPath(null, authorities);
      }
      options.withTlsContext(keep(new TlsContext(tls)));
    }
    return options;
  }

  /**
   * Sends a request. Does not block.
   *
   * @param nanos how long it may take; when these are over it is aborted
   * @return its answer; completed on a thread of the client, never exceptionally. By then the body's memory
   *     is not touched any more
   */
  public CompletableFuture<ObjectReply> send(ObjectRequest request, long nanos) {
    if (nanos <= 0) {
      return CompletableFuture.completedFuture(ObjectReply.none(End.LATE, "no time was left"));
    }
    Endpoint endpoint = choose();
    if (endpoint == null) {
      return CompletableFuture.completedFuture(
          ObjectReply.none(End.REFUSED, "no endpoint has answered lately"));
    }
    CrtExchange exchange = new CrtExchange(request, endpoint, nanos);
    endpoint.started(request);
    open.add(exchange);
    var _ = exchange.returnedByCrt.whenComplete((_, _) -> open.remove(exchange));
    if (closed) {
      exchange.notStarted(ObjectReply.none(End.ABORTED, "the store closes"));
      return exchange.reply;
    }
    try {
      checkAfter(exchange, Math.min(firstByteNanos(request), nanos));
      exchange.started(endpoint.client.makeMetaRequest(toCall(exchange)));
    } catch (RuntimeException e) {
      exchange.notStarted(ObjectReply.none(End.BROKEN, e.getClass().getSimpleName()));
    }
    return exchange.reply;
  }

  private long firstByteNanos(ObjectRequest request) {
    if (request.key().isEmpty() && request.method() != Method.HEAD) {
      // A list, or the removal of many, comes when it is ready.
      return Long.MAX_VALUE;
    }
    double upload = request.source() == null ? 0 : request.bytes() / (double) SLOWEST_PUT;
    return settings.firstByteNanos() + (long) (upload * TimeUnit.SECONDS.toNanos(1));
  }

  /** Of those that may be asked, the one with the least bytes under way. */
  private @Nullable Endpoint choose() {
    return endpoints.stream()
        .sorted((a, b) -> Long.compare(a.underWay(), b.underWay()))
        .filter(Endpoint::admits)
        .findFirst()
        .orElse(null);
  }

  private void checkAfter(CrtExchange exchange, long nanos) {
    Future<?> check = timer.schedule(() -> check(exchange), nanos, TimeUnit.NANOSECONDS);
    var _ = exchange.reply.whenComplete((_, _) -> check.cancel(false));
  }

  /** At the time of the first byte, and at the end of all of it. */
  private void check(CrtExchange exchange) {
    long left = exchange.nanosLeft();
    if (left > 0 && exchange.hasBegun()) {
      checkAfter(exchange, left);
    } else {
      exchange.abort(End.LATE, left > 0 ? "no first byte within s3_first_byte_ms" : "timeout_ms");
    }
  }

  private S3MetaRequestOptions toCall(CrtExchange exchange) {
    ObjectRequest request = exchange.request;
    List<HttpHeader> headers = new ArrayList<>();
    headers.add(new HttpHeader("Host", exchange.endpoint.host));
    if (request.source() != null) {
      headers.add(new HttpHeader("Content-Length", Long.toString(request.bytes())));
    }
    request.headers().forEach((name, value) -> headers.add(new HttpHeader(name, value)));
    HttpRequest http =
        new HttpRequest(
            request.method().name(),
            path(request),
            headers.toArray(HttpHeader[]::new),
            request.source() == null ? null : exchange);
    S3MetaRequestOptions options =
        new S3MetaRequestOptions()
            .withHttpRequest(http)
            .withEndpoint(exchange.endpoint.uri)
            .withResponseHandler(exchange);
    if (request.method() == Method.GET && !request.key().isEmpty()) {
      options.withMetaRequestType(MetaRequestType.GET_OBJECT);
    } else {
      options.withMetaRequestType(MetaRequestType.DEFAULT).withOperationName(operation(request));
    }
    return options;
  }

  private String path(ObjectRequest request) {
    String bucket = settings.pathStyle() ? "/" + settings.bucket() : "";
    String key = request.key().isEmpty() && !bucket.isEmpty() ? "" : "/" + request.key();
    return bucket + key + (request.query().isEmpty() ? "" : "?" + request.query());
  }

  private static String operation(ObjectRequest request) {
    boolean ofBucket = request.key().isEmpty();
    return switch (request.method()) {
      case DELETE -> "DeleteObject";
      case GET -> "ListObjectsV2";
      case HEAD -> ofBucket ? "HeadBucket" : "HeadObject";
      case POST -> "DeleteObjects";
      case PUT -> "PutObject";
    };
  }

  /** Endpoints that are not asked at present. */
  public long shutEndpoints() {
    return endpoints.stream().filter(Endpoint::isShut).count();
  }

  /** Aborts what is under way, and gives back what the client has; takes no longer than the time given. */
  public void close(Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    boolean wasClosed = closed;
    closed = true;
    List<CrtExchange> left = List.copyOf(open);
    left.forEach(exchange -> exchange.abort(End.ABORTED, "the store closes"));
    timer.shutdownNow();
    CompletableFuture<?>[] returned =
        left.stream().map(exchange -> exchange.returnedByCrt).toArray(CompletableFuture<?>[]::new);
    boolean allReturned = await("requests", CompletableFuture.allOf(returned), end);
    while (!resources.isEmpty()) {
      resources.pop().close();
    }
    if (allReturned && loops != null) {
      var _ = await("threads of the transport", loops.getShutdownCompleteFuture(), end);
    }
    if (!wasClosed) {
      CRT.releaseShutdownRef();
    }
  }

  private static boolean await(String what, CompletableFuture<Void> ended, long end) {
    try {
      ended.get(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
      return true;
    } catch (TimeoutException e) {
      LOG.warn("S3: {} did not end while the store closed", what);
    } catch (ExecutionException e) {
      LOG.warn("S3: {} did not end cleanly: {}", what, e.toString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return false;
  }
}
