package ucm.cli.lite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.Main;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsEndpoint;
import ucm.metrics.MetricsRegistry;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.TraceOptions;

/** An engine in lite mode over HTTP: what it shows at {@code /metrics}, and the command that reads it. */
class LiteEndpointTest {

  private static final int BLOCK_TOKENS = 16;

  @TempDir private Path folder;

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();
  private final MetricsRegistry registry = new MetricsRegistry(MetricsConfig.defaults());

  private SchedulerConnector engine(boolean lite) {
    EngineSpec spec =
        new EngineSpec(
            "dp0",
            "a \"model\"",
            "torch.bfloat16",
            1,
            false,
            BLOCK_TOKENS,
            KvLayout.uniform(2, 64, 64));
    UcmConfig config =
        UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("use_lite", lite), "test");
    return ConnectorSetup.of(config, StoreCatalog.find(), spec)
        .withTraces(new TraceOptions(folder, 1 << 20, 2))
        .withMetricsScopes(registry::scope)
        .scheduler();
  }

  /** Serves prompts of two million tokens each: too many for the smallest capacity of the curve. */
  private static void serve(SchedulerConnector scheduler, String id, int first, int tokens) {
    int[] prompt = IntStream.range(first, first + tokens).toArray();
    scheduler.matchedTokens(PromptRequest.of(id, prompt, 1), 0);
  }

  private static String url(MetricsEndpoint endpoint) {
    return "http://127.0.0.1:" + endpoint.port() + "/metrics";
  }

  private static double gauge(String url, String name) throws IOException {
    try (var in = URI.create(url).toURL().openStream()) {
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return LiteEndpoint.parse(text).stream()
          .filter(sample -> sample.name().equals("ucm:" + name))
          .mapToDouble(LiteEndpoint.Sample::value)
          .findFirst()
          .orElseThrow(() -> new AssertionError("no " + name + " in\n" + text));
    }
  }

  private int status(Object... more) {
    String[] args =
        Stream.concat(Stream.of("lite", "status"), Arrays.stream(more).map(Object::toString))
            .toArray(String[]::new);
    return Main.run(new PrintWriter(out, true), new PrintWriter(err, true), args);
  }

  @Test
  @Timeout(120)
  void showsHitRateAndCurveWhileRequestsCome() throws IOException {
    try (SchedulerConnector scheduler = engine(/* lite= */ true);
        MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      String url = url(endpoint);
      assertThat(gauge(url, "lite_hit_rate")).isZero();
      assertThat(gauge(url, "lite_lru_hit_rate_3m_tokens")).isZero();

      serve(scheduler, "a", 0, 2_000_000);
      serve(scheduler, "b", 0, 2_000_000);
      assertThat(gauge(url, "lite_hit_rate")).as("without waiting").isEqualTo(0.5);
      assertThat(gauge(url, "lite_blocks")).isEqualTo(250_000);
      // The curve follows within five seconds.
      while (gauge(url, "lite_requests") != 2) {
        Thread.onSpinWait();
      }
      double before = gauge(url, "lite_lru_hit_rate_3m_tokens");
      assertThat(before).isBetween(0.4, 0.6);
      // Roots are touched last, so half of the prompt is there.
      assertThat(gauge(url, "lite_lru_hit_rate_1m_tokens")).isBetween(0.2, 0.3);
      assertThat(gauge(url, "lite_sample_rate")).isLessThan(1);

      serve(scheduler, "c", 5_000_000, 2_000_000);
      assertThat(gauge(url, "lite_hit_rate")).isBetween(0.33, 0.34);
      while (gauge(url, "lite_requests") != 3) {
        Thread.onSpinWait();
      }
      assertThat(gauge(url, "lite_lru_hit_rate_3m_tokens")).isLessThan(before - 0.1);
      assertThat(gauge(url, "lite_ideal_hit_rate")).isBetween(0.25, 0.42);

      assertThat(status("--url", url)).as(err.toString()).isZero();
      assertThat(out.toString())
          .containsPattern("LITE +scheduler")
          .containsPattern("model +a \"model\"")
          .containsPattern("process +" + url + ", running")
          .containsPattern("requests +3\\n")
          .containsPattern("hit rate so far +33.33%")
          .contains("375,000 of 16 tokens", "CAPACITY, MTOKENS", "10,000", "ideal");
      out.getBuffer().setLength(0);
      assertThat(status("--url", url, "--json")).isZero();
      JsonNode engine = JsonMapper.builder().build().readTree(out.toString()).get(0);
      assertThat(engine.get("lru")).hasSize(9);
      assertThat(engine.get("lru").get(0).get("capacity_tokens").asLong()).isEqualTo(1_000_000);
      assertThat(engine.get("lru").get(1).get("token_hit_rate").asDouble())
          .isEqualTo(gauge(url, "lite_lru_hit_rate_3m_tokens"));
      assertThat(engine.get("external_hit_rate").asDouble()).isBetween(0.33, 0.34);
    }
  }

  @Test
  void saysThatAnEngineIsNotInLiteMode() {
    try (SchedulerConnector scheduler = engine(/* lite= */ false);
        MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      serve(scheduler, "a", 0, 64);
      fails(url(endpoint), "shows no engine in lite mode", "use_lite: true");
      fails(url(endpoint).replace("metrics", "metric"), "HTTP status 404", "are at /metrics");
    }
  }

  @Test
  void saysThatNoServerAnswers() throws IOException {
    int port;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = socket.getLocalPort();
    }
    fails("http://127.0.0.1:" + port + "/metrics", "cannot be reached", "Connection refused");
  }

  @Test
  void refusesWhatIsNotMetrics() throws IOException {
    answers("<html>\n<b>Hello</b>", "not with metrics of Prometheus", "\"<html>\"");
    answers("ucm:lite_requests{broken} 3\n", "not with metrics of Prometheus");
    answers(
        "# HELP x y\nucm:lite_requests{model_name=\"m\"} 3\n",
        "but not lite_block_tokens",
        "metrics_config_path");
  }

  /** Some server that gives one answer. */
  private void answers(String body, String... messages) throws IOException {
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Thread.ofPlatform().daemon().start(() -> answer(server, body));
      fails("http://127.0.0.1:" + server.getLocalPort() + "/metrics", messages);
    }
  }

  private static void answer(ServerSocket server, String body) {
    try (Socket socket = server.accept();
        BufferedReader in =
            new BufferedReader(
                new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8))) {
      String line = in.readLine();
      while (line != null && !line.isEmpty()) {
        line = in.readLine();
      }
      String answer =
          "HTTP/1.1 200 OK\r\nContent-Length: "
              + body.length()
              + "\r\nConnection: close\r\n\r\n"
              + body;
      socket.getOutputStream().write(answer.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void refusesAddressesThatCannotBe() {
    for (String url :
        new String[] {"localhost:9464", "ftp://host/x", "http://", "http://a b", ""}) {
      assertThat(status("--url", url)).as(url).isEqualTo(2);
    }
    assertThat(status("--url", "http://127.0.0.1:1/metrics", folder)).isEqualTo(2);
    assertThat(err.toString())
        .contains("such as http://127.0.0.1:9464/metrics", "exclude each other")
        .doesNotContain("\tat ");
  }

  private void fails(String url, String... messages) {
    err.getBuffer().setLength(0);
    assertThat(status("--url", url)).isEqualTo(1);
    assertThat(err.toString()).contains(url).contains(messages).doesNotContain("\tat ");
    assertThat(out.toString()).isEmpty();
  }
}
