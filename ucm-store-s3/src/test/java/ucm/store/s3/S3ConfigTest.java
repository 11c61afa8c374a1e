package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockLayout;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.testkit.StoreFixture;

final class S3ConfigTest {

  private static StoreConfig config(BlockLayout layout, Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(StoreFixture.workerKeys(layout));
    all.putAll(more);
    return StoreConfig.of(all);
  }

  private static StoreConfig config(Map<String, Object> more) {
    return config(BlockLayout.uniform(4096, 4096, 4096), more);
  }

  @Test
  void defaultsAreThoseOfAws() {
    S3Config read = S3Config.from(config(Map.of("s3_bucket", "blocks"))).orElseThrow();
    assertThat(read.client().endpoints())
        .containsExactly(URI.create("https://s3.us-east-1.amazonaws.com"));
    assertThat(read.client().pathStyle()).isFalse();
    assertThat(read.client().caFile()).isNull();
    assertThat(read.client().firstByteNanos()).isEqualTo(TimeUnit.SECONDS.toNanos(3));
    assertThat(read.prefix()).isEqualTo("ucm");
    assertThat(read.concurrency()).isEqualTo(16);
    assertThat(read.knownNanos()).isEqualTo(TimeUnit.SECONDS.toNanos(60));
    assertThat(read.searches()).isTrue();
    assertThat(read.draftBytes()).isEqualTo(1L << 30);
    assertThat(read.capacityBytes()).isZero();
  }

  @Test
  void everyKeyHasAnEffect() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("s3_bucket", "other");
    settings.put("s3_endpoints", "http://10.0.0.1:9000, https://b.example.com");
    settings.put("s3_plaintext", true);
    settings.put("s3_path_style", false);
    settings.put("s3_ca_file", "/proc/self/status");
    settings.put("s3_region", "eu-west-1");
    settings.put("s3_prefix", "a/b");
    settings.put("s3_concurrency", 3);
    settings.put("s3_first_byte_ms", 50);
    settings.put("s3_known_s", 0);
    settings.put("s3_lookup", "every");
    settings.put("s3_draft_mb", 2);
    settings.put("s3_capacity_gb", 1.5);
    S3Config read = S3Config.from(config(settings)).orElseThrow();
    assertThat(read.client().endpoints())
        .isEqualTo(
            List.of(URI.create("http://10.0.0.1:9000"), URI.create("https://b.example.com")));
    assertThat(read.client().bucket()).isEqualTo("other");
    assertThat(read.client().region()).isEqualTo("eu-west-1");
    assertThat(read.client().pathStyle()).isFalse();
    assertThat(read.client().caFile()).isEqualTo("/proc/self/status");
    assertThat(read.client().firstByteNanos()).isEqualTo(TimeUnit.MILLISECONDS.toNanos(50));
    assertThat(read.prefix()).isEqualTo("a/b");
    assertThat(read.concurrency()).isEqualTo(3);
    assertThat(read.knownNanos()).isZero();
    assertThat(read.searches()).isFalse();
    assertThat(read.draftBytes()).isEqualTo(2 << 20);
    assertThat(read.capacityBytes()).isEqualTo(3L << 29);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "http://10.0.0.1:9000",
        "https://user:hunter2@host",
        "https://host/bucket",
        "ftp://host",
        "host:9000",
        "https://a,,https://b"
      })
  void refusesAnEndpointWithoutShowingIt(String endpoint) {
    StoreConfig config = config(Map.of("s3_bucket", "blocks", "s3_endpoints", endpoint));
    assertThat(S3Config.from(config)).isEmpty();
    assertThat(config.problems()).extracting(ConfigProblem::key).containsExactly("s3_endpoints");
    assertThat(config.problems().toString()).doesNotContain("hunter2");
  }

  @Test
  void refusesMoreShardsThanMetadataHold() {
    StoreConfig config = config(BlockLayout.uniform(8, 8, 8 * 351), Map.of("s3_bucket", "blocks"));
    assertThat(S3Config.from(config)).isEmpty();
    assertThat(config.problems()).extracting(ConfigProblem::key).containsExactly("shard_size");
  }
}
