package ucm.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What clients that mean no good, over real sockets, cannot take from the endpoint. */
@Timeout(300)
class MetricsEndpointAttackTest {

  /** Far above the bounds of the endpoint, so that a test that fails ends. */
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private static final String HALF = "GET /metrics HTTP/1.1\r\nHost: half";

  private final MetricsEndpoint endpoint =
      MetricsEndpoint.start(new MetricsRegistry(MetricsConfig.defaults()), "127.0.0.1", 0);
  private final List<Socket> sockets = new ArrayList<>();

  @AfterEach
  void close() throws IOException {
    disconnect();
    endpoint.close();
  }

  private void disconnect() throws IOException {
    for (Socket socket : sockets) {
      socket.close();
    }
    sockets.clear();
  }

  private Socket connect() throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), endpoint.port());
    sockets.add(socket);
    return socket;
  }

  /** Sends what it can; the endpoint may hang up meanwhile. */
  private static void send(Socket socket, byte[] bytes) {
    try {
      socket.getOutputStream().write(bytes);
    } catch (IOException hungUp) {
      // What the test looks at comes afterwards.
    }
  }

  /** Whether a scrape is answered: a connection that is refused or not answered in 2 s is not. */
  private boolean scraped() {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), endpoint.port())) {
      socket.setSoTimeout(2000);
      socket
          .getOutputStream()
          .write("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      // To its end, when the endpoint has let go of the connection.
      String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return answer.startsWith("HTTP/1.1 200 OK");
    } catch (IOException refused) {
      return false;
    }
  }

  private void awaitScrape() {
    long end = System.nanoTime() + PATIENCE.toNanos();
    boolean scraped = scraped();
    while (!scraped && System.nanoTime() < end) {
      scraped = scraped();
    }
    assertThat(scraped).as("a scrape answered within " + PATIENCE).isTrue();
  }

  private static long descriptors() throws IOException {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return open.count();
    }
  }

  private void awaitDescriptors(long most) throws IOException {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (descriptors() > most && System.nanoTime() < end) {
      // Takes the endpoint a round, in which it lets go of what has ended.
      boolean _ = scraped();
    }
    assertThat(descriptors()).as("open descriptors").isLessThanOrEqualTo(most);
  }

  private static boolean hungUp(Socket socket) throws IOException {
    socket.setSoTimeout((int) PATIENCE.toMillis());
    try {
      socket.getInputStream().readAllBytes();
      return true;
    } catch (SocketTimeoutException e) {
      return false;
    } catch (IOException reset) {
      return true;
    }
  }

  @Test
  void halfSentRequestsStopNoScrapeAndAreHungUpOn() throws Exception {
    awaitScrape();
    long before = descriptors();
    for (int i = 0; i < 20; i++) {
      send(connect(), HALF.getBytes(StandardCharsets.US_ASCII));
    }
    assertThat(scraped()).as("a scrape beside 20 half-sent requests").isTrue();
    for (Socket socket : sockets) {
      assertThat(hungUp(socket)).as("a half-sent request is ended").isTrue();
    }
    disconnect();
    awaitDescriptors(before);
  }

  @Test
  void tenThousandConnectionsAreHungUpOnAndScrapesGoOn() throws Exception {
    awaitScrape();
    long before = descriptors();
    for (int round = 0; round < 10; round++) {
      for (int i = 0; i < 1000; i++) {
        send(connect(), HALF.getBytes(StandardCharsets.US_ASCII));
      }
      // Each of the 1,000 is still open at this end: what is more is held by the endpoint.
      assertThat(descriptors() - before - sockets.size())
          .as("descriptors held for 1,000 connections")
          .isLessThan(200);
      awaitScrape();
      disconnect();
    }
    awaitScrape();
    awaitDescriptors(before);
  }

  @Test
  void connectionsThatSendNothingAreHungUpOn() throws Exception {
    awaitScrape();
    assertThat(hungUp(connect())).as("a silent connection is ended").isTrue();
  }

  @Test
  void aRequestWithoutAnEndIsHungUpOn() throws Exception {
    awaitScrape();
    long before = descriptors();
    Socket socket = connect();
    byte[] line = "GET /metrics HTTP/1.1\r\nX: ".getBytes(StandardCharsets.US_ASCII);
    send(socket, line);
    send(socket, new byte[4 << 20]);
    assertThat(hungUp(socket)).as("a header of 4 MiB is ended").isTrue();
    disconnect();
    awaitScrape();
    awaitDescriptors(before);
  }

  @Test
  void randomBytesStopNoScrape() throws Exception {
    awaitScrape();
    long before = descriptors();
    SplittableRandom random = new SplittableRandom(19);
    for (int i = 0; i < 500; i++) {
      byte[] bytes = new byte[random.nextInt(1, 4096)];
      random.nextBytes(bytes);
      send(connect(), bytes);
      if (i % 20 == 0) {
        disconnect();
      }
    }
    disconnect();
    awaitScrape();
    awaitDescriptors(before);
  }
}
