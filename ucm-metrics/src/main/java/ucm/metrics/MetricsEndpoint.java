package ucm.metrics;

import io.prometheus.metrics.exporter.httpserver.HTTPServer;
import java.io.IOException;
import java.util.concurrent.Executors;
import ucm.api.StoreException;

/**
 * Answers Prometheus at {@code /metrics}, also while nothing is moved. Each request has a virtual thread, so
 * that clients which hold connections keep no scraper out.
 */
public final class MetricsEndpoint implements AutoCloseable {

  private final HTTPServer server;

  private MetricsEndpoint(HTTPServer server) {
    this.server = server;
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
    try {
      return new MetricsEndpoint(
          HTTPServer.builder()
              .hostname(host)
              .port(port)
              .registry(registry.prometheus())
              .executorService(
                  Executors.newThreadPerTaskExecutor(
                      Thread.ofVirtual().name("ucm-metrics-http-", 0).factory()))
              .buildAndStart());
    } catch (IOException e) {
      throw new StoreException(
          "cannot show metrics at %s:%s: %s; choose another port, or 0 for any free one"
              .formatted(host, port, e.getMessage()),
          e);
    }
  }

  /** The port that is listened on. */
  public int port() {
    return server.getPort();
  }

  /** Stops listening; scrapes under way are cut off. Idempotent. */
  @Override
  public void close() {
    server.close();
  }
}
