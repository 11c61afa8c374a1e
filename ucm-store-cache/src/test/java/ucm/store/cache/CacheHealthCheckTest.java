package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;
import ucm.store.cache.config.HostMemory;

class CacheHealthCheckTest {

  private static final long GIB_IN_KB = 1 << 20;

  @TempDir private Path root;
  private final Map<String, Object> values = new HashMap<>();

  @BeforeEach
  void hasEightGib() throws IOException {
    Files.createDirectory(root.resolve("proc"));
    memory(1024);
  }

  private void memory(long totalGib) throws IOException {
    String total = "MemTotal: " + totalGib * GIB_IN_KB + " kB\n";
    String available = "MemAvailable: " + 8 * GIB_IN_KB + " kB\n";
    Files.writeString(root.resolve("proc/meminfo"), total + available);
  }

  private CacheHealthCheck check() {
    return new CacheHealthCheck(new HostMemory(root));
  }

  private Finding only() {
    return check().run(StoreConfig.of(values), List.of("Cache", "Posix")).getFirst();
  }

  @Test
  void saysNothingAboutPipelinesWithoutCache() {
    assertThat(check().run(StoreConfig.of(values), List.of("Posix"))).isEmpty();
  }

  @Test
  void theDefaultFitsTheMachine() throws IOException {
    memory(16);
    assertThat(only().status()).isEqualTo(Status.OK);
    assertThat(only().found()).contains("8.0 GiB are available", "capacity_gb is 4.0");
  }

  @Test
  void defaultThatDoesNotFitFails() {
    assertThat(only().status()).isEqualTo(Status.FAILED);
    assertThat(only().found()).contains("8.0 GiB are available", "capacity_gb is 32.0");
    StoreConfig suggested = StoreConfig.of(values).withSuggestions(Map.of("buffer_size", 64));
    assertThat(check().run(suggested, List.of("Cache", "Odd")).getFirst().found())
        .contains("capacity_gb is 64.0");
  }

  @Test
  void countsTheBuffersOfAllWorkers() {
    values.put("cache_buffer_capacity_gb", 4);
    values.put("local_rank_size", 2);
    assertThat(only().status()).isEqualTo(Status.OK);
    values.put("local_rank_size", 3);
    assertThat(only().status()).isEqualTo(Status.FAILED);
    assertThat(only().advice())
        .isEqualTo("write cache_buffer_capacity_gb: 0.6, or use a machine with more memory");
  }

  @Test
  void sharedBufferCountsOnce() {
    values.put("share_buffer_enable", true);
    values.put("local_rank_size", 8);
    values.put("cache_buffer_capacity_gb", 4);
    assertThat(only().status()).isEqualTo(Status.OK);
    assertThat(only().found()).contains("ucm serve");
    values.remove("cache_buffer_capacity_gb");
    assertThat(only().status()).isEqualTo(Status.FAILED);
    assertThat(only().found()).contains("capacity_gb is 256.0, shared");
  }
}
