package ucm.metrics;

import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;

/**
 * Answers Prometheus at {@code /metrics}, also while nothing is moved. Each connection serves one
 * request, on a virtual thread of its own, and is ended after {@value #SECONDS} s whatever it waits
 * for. {@value #CONNECTIONS} are open at once: a further one takes the place of the oldest, so that
 * clients that only hold connections keep no scraper out.
 */
public final class MetricsEndpoint implements AutoCloseable {

  private static final int CONNECTIONS = 32;
  private static final int SECONDS = 5;
  private static final int MAX_HEAD = 8 << 10;
  private static final int SCRAPES = 2;
  private static final Duration RETRY = Duration.ofMillis(100);

  /** Connections that are not taken in yet: with few, a flood makes a scrape wait for seconds. */
  private static final int BACKLOG = 1024;

  private static final String END = "\r\n\r\n";
  private static final String PATH = "/metrics";

  private final MetricsRegistry registry;
  private final ExpositionFormats formats = ExpositionFormats.init();
  private final ServerSocket listener;

  /** Bounds the answers that are being written down, which hold the most memory. */
  private final Semaphore scrapes = new Semaphore(SCRAPES);

  /** Oldest first; guarded by itself. */
  private final Set<Socket> open = new LinkedHashSet<>();

  private record Request(String method, String path, String accept) {}

  private MetricsEndpoint(MetricsRegistry registry, ServerSocket listener) {
    this.registry = registry;
    this.listener = listener;
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
    ServerSocket listener;
    try {
      listener = new ServerSocket(port, BACKLOG, InetAddress.getByName(host));
    } catch (IOException e) {
      throw new StoreException(
          ("cannot show metrics at %s:%s: %s; choose another port, or 0 for any free" + " one")
              .formatted(host, port, e.getMessage()),
          e);
    }
    MetricsEndpoint endpoint = new MetricsEndpoint(registry, listener);
    Thread.ofPlatform().daemon().name("ucm-metrics-accept").start(endpoint::accept);
    return endpoint;
  }

  /** The port that is listened on. */
  public int port() {
    return listener.getLocalPort();
  }

  private void accept() {
    try {
      while (!listener.isClosed()) {
        try {
          serve(listener.accept());
        } catch (IOException e) {
          // Closed, or no descriptor was free, which may last.
          Thread.sleep(RETRY);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      close();
    }
  }

  private void serve(Socket socket) {
    synchronized (open) {
      open.add(socket);
    }
    endAllBut(CONNECTIONS);
    Thread server = Thread.ofVirtual().name("ucm-metrics-http").start(() -> serveAndForget(socket));
    Thread.ofVirtual().name("ucm-metrics-deadline").start(() -> endInTime(server, socket));
  }

  private static void endInTime(Thread server, Socket socket) {
    try {
      boolean _ = server.join(Duration.ofSeconds(SECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      hangUp(socket);
    }
  }

  /** Ends the oldest connections beyond a number. */
  private void endAllBut(int connections) {
    synchronized (open) {
      while (open.size() > connections) {
        Socket oldest = open.iterator().next();
        hangUp(oldest);
        open.remove(oldest);
      }
    }
  }

  private void serveAndForget(Socket socket) {
    try (socket) {
      answer(socket);
    } catch (IOException hungUp) {
      // By the client or by a bound: no client is left to tell.
    } finally {
      synchronized (open) {
        open.remove(socket);
      }
    }
  }

  private void answer(Socket socket) throws IOException {
    String head = head(socket.getInputStream());
    Request request = head == null ? null : parse(head);
    if (head == null) {
      refuse(socket, "431 Request Header Fields Too Large", "at most " + MAX_HEAD + " bytes");
    } else if (request == null) {
      refuse(socket, "400 Bad Request", "this is no HTTP/1 request");
    } else if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
      refuse(socket, "405 Method Not Allowed", "only GET and HEAD are answered");
    } else if (!request.path().equals(PATH)) {
      refuse(socket, "404 Not Found", "metrics are at " + PATH);
    } else {
      scrape(socket, request);
    }
  }

  /** The request line and the headers; null when they are longer than {@value #MAX_HEAD} bytes. */
  private static @Nullable String head(InputStream in) throws IOException {
    byte[] bytes = new byte[MAX_HEAD];
    int length = 0;
    while (length < bytes.length) {
      int read = in.read(bytes, length, bytes.length - length);
      if (read < 0) {
        throw new IOException("the client hung up before the end of its request");
      }
      int from = Math.max(0, length - 3);
      length += read;
      int end = new String(bytes, from, length - from, StandardCharsets.ISO_8859_1).indexOf(END);
      if (end >= 0) {
        return new String(bytes, 0, from + end, StandardCharsets.ISO_8859_1);
      }
    }
    return null;
  }

  private static @Nullable Request parse(String head) {
    String[] lines = head.split("\r\n", -1);
    String[] words = lines[0].split(" ", -1);
    if (words.length != 3 || !words[2].startsWith("HTTP/1.")) {
      return null;
    }
    String accept = "";
    for (int i = 1; i < lines.length; i++) {
      if (lines[i].regionMatches(true, 0, "accept:", 0, "accept:".length())) {
        accept = lines[i].substring("accept:".length()).strip();
      }
    }
    try {
      String path = new URI(words[1]).getPath();
      return path == null ? null : new Request(words[0], path, accept);
    } catch (URISyntaxException e) {
      return null;
    }
  }

  private void scrape(Socket socket, Request request) throws IOException {
    ExpositionFormatWriter writer = formats.findWriter(request.accept());
    ByteArrayOutputStream body = new ByteArrayOutputStream(1 << 16);
    scrapes.acquireUninterruptibly();
    try {
      writer.write(body, registry.prometheus().scrape());
    } finally {
      scrapes.release();
    }
    send(
        socket,
        "200 OK",
        writer.getContentType(),
        body.toByteArray(),
        request.method().equals("HEAD"));
  }

  private static void refuse(Socket socket, String status, String why) throws IOException {
    send(socket, status, "text/plain", (why + "\n").getBytes(StandardCharsets.UTF_8), false);
  }

  private static void send(Socket socket, String status, String type, byte[] body, boolean head)
      throws IOException {
    String lines =
        "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            .formatted(status, type, body.length);
    OutputStream out = socket.getOutputStream();
    out.write(lines.getBytes(StandardCharsets.ISO_8859_1));
    if (!head) {
      out.write(body);
    }
  }

  private static void hangUp(Closeable socket) {
    try {
      socket.close();
    } catch (IOException e) {
      // Gone already.
    }
  }

  /** Stops listening; scrapes under way are cut off. Idempotent. */
  @Override
  public void close() {
    hangUp(listener);
    endAllBut(0);
  }
}
