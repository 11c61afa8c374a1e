package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.MemoryRegion;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsEndpoint;
import ucm.metrics.MetricsRegistry;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;
import ucm.pipeline.connector.statistics.TraceOptions;

/** The dashboard, the documentation and the code name the same metrics. */
class DashboardTest {

  static final Path DASHBOARD = Path.of("../docs/grafana.json");
  private static final Pattern METRIC = Pattern.compile("ucm:[a-z0-9_]+");
  private static final Pattern SERIES = Pattern.compile("(?m)^(ucm:[a-z0-9_]+)[{ ]");

  @TempDir private Path folder;

  /** The names of all series of idle engines over Posix and over S3, and of one in lite mode, as Prometheus sees them. */
  private Set<String> exported() throws IOException {
    MetricsRegistry registry = new MetricsRegistry(MetricsConfig.defaults());
    EngineSpec spec =
        new EngineSpec(
            "test", "m", "torch.bfloat16", 1, false, 16, KvLayout.uniform(2, 4096, 4096));
    UcmConfig config =
        UcmConfig.of(
            "Cache|Posix|Nfs",
            Map.of(
                "storage_backends",
                Files.createDirectories(folder.resolve("below")).toString(),
                "posix_storage_backends",
                Files.createDirectories(folder.resolve("here")).toString(),
                "cache_buffer_capacity_gb",
                0.01,
                "posix_capacity_gb",
                1));
    ConnectorSetup setup =
        ConnectorSetup.of(config, StoreCatalog.find(), spec).withMetricsScopes(registry::scope);
    // No server listens there, which the store opens with.
    UcmConfig remote =
        UcmConfig.of(
            "Cache|S3",
            Map.of(
                "s3_endpoints",
                "http://127.0.0.1:1",
                "s3_bucket",
                "blocks",
                "cache_buffer_capacity_gb",
                0.01));
    ConnectorSetup bucket =
        ConnectorSetup.of(remote, StoreCatalog.find(), spec).withMetricsScopes(registry::scope);
    ConnectorSetup lite =
        ConnectorSetup.of(
                UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("use_lite", true), "test"),
                StoreCatalog.find(),
                spec)
            .withTraces(new TraceOptions(folder, 1 << 20, 1))
            .withMetricsScopes(registry::scope);
    try (Arena arena = Arena.ofShared();
        WorkerConnector worker = setup.worker(0, 0, caches(arena, spec.kv()));
        SchedulerConnector scheduler = setup.scheduler();
        WorkerConnector storing = bucket.worker(0, 0, caches(arena, spec.kv()));
        SchedulerConnector asking = bucket.scheduler();
        SchedulerConnector counting = lite.scheduler();
        MetricsEndpoint endpoint = MetricsEndpoint.start(registry, "127.0.0.1", 0)) {
      assertThat(worker).isNotNull();
      assertThat(scheduler.openRequests()).isZero();
      assertThat(storing).isNotNull();
      assertThat(asking.openRequests()).isZero();
      assertThat(counting.openRequests()).isZero();
      URI uri = URI.create("http://127.0.0.1:" + endpoint.port() + "/metrics");
      String text;
      try (var stream = uri.toURL().openStream()) {
        text = new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      }
      Set<String> names = new TreeSet<>();
      SERIES.matcher(text).results().forEach(found -> names.add(found.group(1)));
      return names;
    }
  }

  private static KvCaches caches(Arena arena, KvLayout layout) {
    List<List<KvTensor>> layers = new ArrayList<>();
    for (int layer = 0; layer < layout.layers(); layer++) {
      layers.add(List.of(tensor(arena), tensor(arena)));
    }
    return new KvCaches(layers);
  }

  private static KvTensor tensor(Arena arena) {
    return KvTensor.dense(MemoryRegion.host(arena.allocate(8 * 4096, 4096)), 4096);
  }

  /** The expressions of all panels. */
  static List<String> expressions() throws IOException {
    JsonNode dashboard = JsonMapper.builder().build().readTree(Files.readString(DASHBOARD));
    List<String> expressions = new ArrayList<>();
    for (JsonNode panel : dashboard.get("panels")) {
      if (panel.has("targets")) {
        for (JsonNode target : panel.get("targets")) {
          expressions.add(target.get("expr").asString());
        }
      }
    }
    return expressions;
  }

  @Test
  void everyMetricOfTheDashboardIsExported() throws IOException {
    Set<String> shown = new TreeSet<>();
    for (String expression : expressions()) {
      Matcher names = METRIC.matcher(expression);
      assertThat(names.find()).as(expression).isTrue();
      names.reset().results().forEach(found -> shown.add(found.group()));
    }
    assertThat(shown).hasSizeGreaterThan(60);
    assertThat(shown).anyMatch(name -> name.startsWith("ucm:s3_"));
    assertThat(exported()).containsAll(shown);
  }

  @Test
  void everyMetricThatTheDocumentationNamesIsExported() throws IOException {
    String page = Files.readString(Path.of("../docs/metrics.md"));
    Set<String> named = new TreeSet<>();
    METRIC.matcher(page).results().forEach(found -> named.add(found.group()));
    Set<String> known = new TreeSet<>();
    for (String series : exported()) {
      known.add(series);
      known.add(series.replaceFirst("_(bucket|count|sum)$", ""));
    }
    assertThat(named).hasSizeGreaterThan(40);
    assertThat(known).containsAll(named);
  }
}
