package ucm.metrics;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import ucm.api.StoreException;

/**
 * Answers Prometheus at {@code /metrics}, also while nothing is moved. Two threads, {@code
 * ucm-metrics-http-0} and {@code -1}, belong to it; scrapes beyond {@value #MAX_WAITING} waiting ones
 * are not answered.
 */
public final class MetricsEndpoint implements AutoCloseable {

  private static final int THREADS = 2;
  private static final int MAX_WAITING = 16;
  private static final String PATH = "/metrics";

  private final MetricsRegistry registry;
  private final ExpositionFormats formats = ExpositionFormats.init();
  private final HttpServer server;
  private final ThreadPoolExecutor workers;

  private MetricsEndpoint(MetricsRegistry registry, HttpServer server) {
    this.registry = registry;
    this.server = server;
    AtomicInteger next = new AtomicInteger();
    this.workers =
        new ThreadPoolExecutor(
            THREADS,
            THREADS,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MAX_WAITING),
            task ->
                Thread.ofPlatform()
                    .daemon()
                    .name("ucm-metrics-http-" + next.getAndIncrement())
                    .unstarted(task),
            new ThreadPoolExecutor.DiscardPolicy());
  }

  /**
   * Begins to answer.
   *
   * @param host the address to listen on, for example {@code 127.0.0.1}
   * @param port 0 for any free one
   * @return the endpoint, which the caller closes
   * @throws StoreException when the address cannot be had
   */
  public static MetricsEndpoint start(MetricsRegistry registry, String host, int port) {
    InetSocketAddress address = new InetSocketAddress(host, port);
    HttpServer server;
    try {
      server = HttpServer.create(address, 0);
    } catch (IOException e) {
      throw new StoreException(
          "cannot show metrics at "
              + host
              + ":"
              + port
              + ": "
              + e.getMessage()
              + "; choose another port, or 0 for any free one",
          e);
    }
    MetricsEndpoint endpoint = new MetricsEndpoint(registry, server);
    server.setExecutor(endpoint.workers);
    server.createContext("/", endpoint::answer);
    server.start();
    return endpoint;
  }

  /** The port that is listened on. */
  public int port() {
    return server.getAddress().getPort();
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      String path = exchange.getRequestURI().getPath();
      String method = exchange.getRequestMethod();
      if (!method.equals("GET") && !method.equals("HEAD")) {
        send(exchange, 405, "text/plain", text("only GET and HEAD are answered\n"));
      } else if (!path.equals(PATH)) {
        send(exchange, 404, "text/plain", text("metrics are at " + PATH + "\n"));
      } else {
        scrape(exchange);
      }
    }
  }

  private void scrape(HttpExchange exchange) throws IOException {
    String accept = exchange.getRequestHeaders().getFirst("Accept");
    ExpositionFormatWriter writer = formats.findWriter(accept == null ? "" : accept);
    ByteArrayOutputStream body = new ByteArrayOutputStream(1 << 16);
    writer.write(body, registry.prometheus().scrape());
    send(exchange, 200, writer.getContentType(), body.toByteArray());
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void send(HttpExchange exchange, int status, String type, byte[] body)
      throws IOException {
    exchange.getResponseHeaders().set("Content-Type", type);
    if (exchange.getRequestMethod().equals("HEAD")) {
      exchange.sendResponseHeaders(status, -1);
    } else {
      exchange.sendResponseHeaders(status, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  /** Stops listening; scrapes under way are cut off. Idempotent. */
  @Override
  public void close() {
    server.stop(0);
    workers.shutdownNow();
  }
}
