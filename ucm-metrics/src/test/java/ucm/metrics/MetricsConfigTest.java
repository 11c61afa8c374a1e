package ucm.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;

class MetricsConfigTest {

  @TempDir private Path folder;

  private MetricsConfig read(String text) throws IOException {
    return MetricsConfig.read(Files.writeString(folder.resolve("metrics.yaml"), text));
  }

  private static List<MetricSnapshot> snapshots(MetricsConfig config) {
    MetricsRegistry registry = new MetricsRegistry(config);
    StoreMetrics scope = registry.scope("m", "0");
    scope.counter("load_bytes", "built in");
    scope.histogram("load_duration", "built in");
    scope.gauge("cache_lookup_hit_rate", "built in", () -> 0.5);
    return registry.prometheus().scrape().stream()
        .filter(metric -> !metric.getMetadata().getName().contains("jvm"))
        .toList();
  }

  private static List<String> names(MetricsConfig config) {
    return snapshots(config).stream()
        .map(metric -> metric.getMetadata().getName())
        .sorted()
        .toList();
  }

  @Test
  void takesPrefixDocumentationAndBucketsOfTheOriginalsFile() throws Exception {
    MetricsConfig config =
        read(
            """
            log_interval: 5
            multiproc_dir: "/vllm-workspace"
            metric_prefix: "kv:"
            histogram_max_length: 10000
            counter:
              - name: "load_bytes_total"
                documentation: "Total bytes loaded"
            gauge:
              - name: "cache_lookup_hit_rate"
                documentation: "hit rate"
                multiprocess_mode: "livemostrecent"
            histogram:
              - name: "load_duration"
                documentation: "Time to load (ms)"
                buckets: [0, 50, 100.5]
            """);
    List<MetricSnapshot> metrics = snapshots(config);
    assertThat(names(config))
        .containsExactly("kv:cache_lookup_hit_rate", "kv:load_bytes", "kv:load_duration");
    HistogramSnapshot duration =
        (HistogramSnapshot)
            metrics.stream()
                .filter(metric -> metric instanceof HistogramSnapshot)
                .findFirst()
                .orElseThrow();
    assertThat(duration.getMetadata().getHelp()).isEqualTo("Time to load (ms)");
    assertThat(
            duration.getDataPoints().getFirst().getClassicBuckets().stream()
                .map(bucket -> bucket.getUpperBound()))
        .containsExactly(0.0, 50.0, 100.5, Double.POSITIVE_INFINITY);
  }

  @Test
  void readsTheOlderSectionNamesAndWhatTheySwitchOff() throws Exception {
    MetricsConfig config =
        read(
            """
            enabled_metrics: {counters: true, gauges: false, histograms: true}
            histograms:
              - name: "load_duration"
                buckets: [1]
            """);
    assertThat(names(config)).containsExactly("ucm:load_bytes", "ucm:load_duration");
  }

  @Test
  void showsListedMetricsOnlyWhenAskedTo() throws Exception {
    MetricsConfig config = read("only_listed: true\ncounter: [{name: load_bytes_total}]\n");
    assertThat(names(config)).containsExactly("ucm:load_bytes");
  }

  @Test
  void saysWhereToListen() throws Exception {
    MetricsConfig config = read("port: 9464\nhost: 0.0.0.0\n");
    assertThat(config.port()).hasValue(9464);
    assertThat(config.host()).isEqualTo("0.0.0.0");
    assertThat(MetricsConfig.defaults().port()).isEmpty();
    assertThat(MetricsConfig.defaults().host()).isEqualTo("127.0.0.1");
  }

  @Test
  void reportsAllFaultsOfAFileAtOnce() {
    assertThatThrownBy(
            () ->
                read(
                    """
                    metric_prefix: "1:"
                    port: 70000
                    only_listed: perhaps
                    histogramm: []
                    counter: {}
                    gauge: [{documentation: nameless}]
                    histogram:
                      - {name: a, buckets: [1, 1]}
                      - {name: b, buckets: [x]}
                      - {name: c, buckets: []}
                    """))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("metrics.yaml")
        .hasMessageContaining("metric_prefix is '1:'")
        .hasMessageContaining("port is 70000")
        .hasMessageContaining("only_listed is perhaps")
        .hasMessageContaining("histogramm is no key")
        .hasMessageContaining("counter must be a list")
        .hasMessageContaining("gauge: an entry has no name")
        .hasMessageContaining("histogram.a: buckets")
        .hasMessageContaining("histogram.b: buckets")
        .hasMessageContaining("histogram.c: buckets");
  }

  @Test
  void namesAFileThatIsMissingOrNoYaml() {
    assertThatThrownBy(() -> MetricsConfig.read(folder.resolve("none.yaml")))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("the metrics file")
        .hasMessageContaining("none.yaml is not there");
    assertThatThrownBy(() -> read("a: [")).hasMessageContaining("is no YAML");
    assertThatThrownBy(() -> read("- a")).hasMessageContaining("top level");
  }
}
