package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Debian's Prometheus scrapes a running command, and answers what the dashboard asks. */
class PrometheusIT {

  private static final Path PROMETHEUS = Path.of("/usr/bin/prometheus");
  private static final Duration PATIENCE = Duration.ofMinutes(2);
  @TempDir private Path folder;

  private int api;

  @Test
  void prometheusScrapesARunningCommandAndAnswersTheDashboard() throws Exception {
    assumeTrue(
        Files.isExecutable(PROMETHEUS),
        "Debian's package prometheus is not installed: no " + PROMETHEUS);
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Posix\"",
            "storage_backends: \"" + folder.resolve("blocks") + "\"",
            "cache_buffer_capacity_gb: 0.05");
    Process replay =
        UcmProcess.start(
            UcmProcess.IMAGE,
            Map.of(),
            "trace",
            "replay",
            "-",
            "--config",
            config,
            "--metrics-port",
            0,
            "--json");
    Process prometheus = null;
    try (BufferedReader err = replay.errorReader(StandardCharsets.UTF_8)) {
      prometheus = start(port(err));
      await("up", result -> value(result) == 1);
      // Nothing has moved: the metrics are there all the same.
      await("ucm:cache_load_bytes_total", result -> value(result) == 0);
      // More than the reader's buffers hold, so that it need not wait for the end of the input.
      for (int i = 0; i < 3_000; i++) {
        replay.getOutputStream().write(line(i).getBytes(StandardCharsets.UTF_8));
      }
      replay.getOutputStream().flush();
      // Two blocks, then each time the first one again.
      await("ucm:total_prefix_query_tokens_total >= 2048", result -> !result.isEmpty());
      await("ucm:ucm_hit_tokens_total >= 512", result -> !result.isEmpty());
      await("ucm:cache_load_bytes_total >= 16384", result -> !result.isEmpty());
      for (String expression : DashboardTest.expressions()) {
        query(
            expression
                .replace("$__rate_interval", "1m")
                .replace("$model_name", ".*")
                .replace("$worker_id", ".*"));
      }
      replay.getOutputStream().close();
      assertThat(replay.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(replay.exitValue()).as(() -> err.lines().toList().toString()).isZero();
    } finally {
      replay.destroyForcibly().waitFor();
      if (prometheus != null) {
        prometheus.destroyForcibly().waitFor();
      }
    }
  }

  /** A request of two blocks of 512 tokens; the first is that of all. */
  private static String line(int i) {
    return "{\"timestamp\": %d, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": [1, %d]}\n"
        .formatted(i, 100 + i);
  }

  /** The port that the command says it answers at. */
  private static int port(BufferedReader err) throws IOException {
    String line = err.readLine();
    while (line != null && !line.startsWith("ucm: metrics at ")) {
      line = err.readLine();
    }
    assertThat(line).as("the line that says where").isNotNull();
    return URI.create(line.substring("ucm: metrics at ".length())).getPort();
  }

  private Process start(int target) throws IOException {
    try (ServerSocket free = new ServerSocket(0)) {
      api = free.getLocalPort();
    }
    Path scrape =
        Files.writeString(
            folder.resolve("prometheus.yml"),
            """
            global: {scrape_interval: 1s}
            scrape_configs:
              - job_name: ucm
                static_configs: [{targets: ["127.0.0.1:%d"]}]
            """
                .formatted(target));
    return new ProcessBuilder(
            List.of(
                PROMETHEUS.toString(),
                "--config.file=" + scrape,
                "--storage.tsdb.path=" + folder.resolve("tsdb"),
                "--web.listen-address=127.0.0.1:" + api))
        .redirectErrorStream(true)
        .redirectOutput(folder.resolve("prometheus.log").toFile())
        .start();
  }

  private static double value(JsonNode result) {
    return result.isEmpty()
        ? Double.NaN
        : Double.parseDouble(result.get(0).get("value").get(1).asString());
  }

  /** Asks until the answer is as expected; Prometheus scrapes each second. */
  private void await(String expression, Predicate<JsonNode> expected)
      throws IOException, InterruptedException {
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    JsonNode result = null;
    while (System.nanoTime() < deadline) {
      try {
        result = query(expression);
        if (expected.test(result)) {
          return;
        }
      } catch (ConnectException e) {
        // Prometheus is not up yet.
        result = null;
      }
      TimeUnit.MILLISECONDS.sleep(200);
    }
    throw new AssertionError(
        expression + " is " + result + "; " + Files.readString(folder.resolve("prometheus.log")));
  }

  private JsonNode query(String expression) throws IOException {
    URI uri =
        URI.create(
            "http://127.0.0.1:"
                + api
                + "/api/v1/query?query="
                + URLEncoder.encode(expression, StandardCharsets.UTF_8));
    HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
    connection.setConnectTimeout(5_000);
    connection.setReadTimeout(30_000);
    int status = connection.getResponseCode();
    if (status == HttpURLConnection.HTTP_UNAVAILABLE) {
      // It listens, and still reads its own files.
      throw new ConnectException("Prometheus is starting");
    }
    try (InputStream stream =
        status == 200 ? connection.getInputStream() : connection.getErrorStream()) {
      JsonNode answer = JsonMapper.builder().build().readTree(stream);
      assertThat(status).as(() -> expression + ": " + answer).isEqualTo(200);
      return answer.get("data").get("result");
    }
  }
}
