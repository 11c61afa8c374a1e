package ucm.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;

class MetricsEndpointTest {

  private static final int HELD = 100;
  private static final String LABELS = "{model_name=\"qwq\",worker_id=\"0\"}";

  private final MetricsRegistry registry = new MetricsRegistry(MetricsConfig.defaults());
  private final StoreMetrics scope = registry.scope("qwq", "0");

  private static HttpURLConnection get(MetricsEndpoint endpoint, String path) throws IOException {
    URI uri = URI.create("http://127.0.0.1:" + endpoint.port() + path);
    return (HttpURLConnection) uri.toURL().openConnection();
  }

  private static String text(InputStream stream) throws IOException {
    try (stream) {
      return new String(stream.readAllBytes(), UTF_8);
    }
  }

  private String scrape() throws IOException {
    try (MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      HttpURLConnection response = get(endpoint, "/metrics");
      assertThat(response.getResponseCode()).isEqualTo(200);
      assertThat(response.getContentType()).startsWith("text/plain");
      return text(response.getInputStream());
    }
  }

  @Test
  void showsWhatIsCountedUnderTheNamesOfTheOriginal() throws Exception {
    scope.counter("cache_load_bytes", "Bytes copied to the engine.").add(4096);
    scope.counter("posix_load_bytes", "Bytes loaded").add(512);
    scope.histogram("load_speed", "GB/s").record(2.5);
    scope.gauge("posix_health_state", "worst breaker", () -> 2);
    assertThat(scrape())
        .contains("# HELP ucm:cache_load_bytes_total Bytes copied to the engine.")
        .contains("ucm:cache_load_bytes_total" + LABELS + " 4096.0")
        .contains("ucm:posix_s2h_bytes_total" + LABELS + " 512.0")
        .contains("ucm:load_speed_bucket{model_name=\"qwq\",worker_id=\"0\",le=\"3.0\"} 1")
        .contains("ucm:load_speed_sum" + LABELS + " 2.5")
        .contains("ucm:posix_health_state" + LABELS + " 2.0")
        .contains("ucm:posix_store_health" + LABELS + " 0.0");
  }

  @Test
  void isLiveWhenNothingMoves() throws Exception {
    scope.counter("load_bytes", "Bytes loaded");
    scope.histogram("load_duration", "ms");
    assertThat(scrape())
        .contains("ucm:load_bytes_total" + LABELS + " 0.0")
        .contains("ucm:load_duration_count" + LABELS + " 0")
        .containsPattern("ucm:jvm_heap_used_bytes\\S* \\d");
  }

  @Test
  void keepsPlacesApartAndGivesTheSameInstrumentTwice() throws Exception {
    registry.scope("qwq", "1").counter("load_bytes", "Bytes").add(1);
    scope.counter("load_bytes", "Bytes").add(2);
    scope.counter("load_bytes", "Bytes").add(3);
    assertThat(scrape())
        .contains("ucm:load_bytes_total{model_name=\"qwq\",worker_id=\"1\"} 1.0")
        .contains("ucm:load_bytes_total" + LABELS + " 5.0");
  }

  @Test
  void aGaugeOfAClosedStoreHidesNoOther() throws Exception {
    scope.gauge(
        "cache_slots",
        "Slots",
        () -> {
          throw new IllegalStateException("closed");
        });
    scope.gauge("cache_slots_in_use", "Slots", () -> 7);
    assertThat(scrape())
        .doesNotContain("ucm:cache_slots{")
        .contains("ucm:cache_slots_in_use" + LABELS + " 7.0");
  }

  @Test
  void aNameThatIsTakenByAnotherKindCostsThatMetricOnly() throws Exception {
    scope.counter("mine", "a counter").increment();
    scope.gauge("mine", "a gauge", () -> 1);
    scope.histogram("mine", "a histogram").record(1);
    assertThat(scrape()).contains("ucm:mine_total" + LABELS + " 1.0");
  }

  @Test
  void answersOtherPathsWithTheRightOne() throws Exception {
    try (MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      HttpURLConnection response = get(endpoint, "/");
      assertThat(text(response.getInputStream())).contains("/metrics");
    }
  }

  @Test
  void halfSentRequestsStopNoScrape() throws Exception {
    List<Socket> held = new ArrayList<>();
    try (MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      for (int i = 0; i < HELD; i++) {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), endpoint.port());
        held.add(socket);
        socket.getOutputStream().write("GET /metrics HTTP/1.1\r\nHost: half".getBytes(UTF_8));
        // An answer also says that the connection before it was taken: the server's backlog is
        // small, and what does not fit
        // would be tried again by TCP after seconds.
        assertThat(get(endpoint, "/metrics").getResponseCode()).isEqualTo(200);
      }
    } finally {
      for (Socket socket : held) {
        socket.close();
      }
    }
  }

  @Test
  void aTakenPortIsAnErrorThatSaysSo() {
    try (MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      int port = endpoint.port();
      assertThatThrownBy(() -> MetricsEndpoint.start(registry, "127.0.0.1", port))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("127.0.0.1:" + port)
          .hasMessageContaining("choose another port");
    }
  }

  @Test
  void countingAllocatesNothing() {
    StoreMetrics.Counter counter = scope.counter("load_bytes", "Bytes");
    StoreMetrics.Histogram histogram = scope.histogram("load_duration", "ms");
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long allocated = Long.MAX_VALUE;
    // The client leaves an object a value that the JIT compiler removes once it gets to it.
    for (int round = 0; round < 20_000 && allocated > 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 10_000; i++) {
        counter.add(i);
        histogram.record(i);
      }
      allocated = threads.getCurrentThreadAllocatedBytes() - before;
    }
    assertThat(allocated).as("bytes for 20,000 values").isZero();
  }
}
