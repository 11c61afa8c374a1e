package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

final class Ds3fsConfigTest {

  private static final long MIB = 1 << 20;

  private static StoreConfig config(Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("storage_backends", "/3fs/stage/a");
    settings.put("block_size", 4096);
    settings.putAll(more);
    return StoreConfig.of(settings);
  }

  @Test
  void hasTheDefaultsOfTheSeeds() {
    StoreConfig given = config(Map.of());
    assertThat(Ds3fsConfig.from(given))
        .isEqualTo(
            new Ds3fsConfig(
                List.of("/3fs/stage/a"),
                1,
                32,
                new RingSettings(256, 0, -1),
                200 * MIB,
                200 * MIB,
                "",
                "",
                TimeUnit.SECONDS.toNanos(30)));
    StoreConfig ofFiles = Ds3fsConfig.ofFiles(given);
    assertThat(ofFiles.get(CommonKeys.DEVICE_ID)).isEqualTo(-1);
    assertThat(ofFiles.get(ConfigKey.flag("io_direct"))).isTrue();
    assertThat(ofFiles.get(ConfigKey.integer("waiting_queue_depth"))).isEqualTo(1024);
    assertThat(ofFiles.get(ConfigKey.integer("running_queue_depth"))).isEqualTo(32_768);
    assertThat(ofFiles.get(ConfigKey.integer("ds3fs_data_trans_concurrency"))).isEqualTo(32);
    assertThat(ofFiles.get(ConfigKey.integer("data_dir_shard_bytes"))).isEqualTo(2);
    assertThat(given.problems()).isEmpty();
  }

  @Test
  void suggestsTheBufferSizeOfTheOriginalToTheStageAbove() {
    StoreConfig above = StoreConfig.of(Map.of()).withSuggestions(new Ds3fsStore().suggestions());
    assertThat(above.suggestion(ConfigKey.number("buffer_size"))).contains(64.0);
  }

  @Test
  void readsEveryKeyAlsoByTheNamesOfLmcache() {
    Map<String, Object> all = new TreeMap<>();
    all.put("storage_backends", List.of("/3fs/a", "/3fs/b"));
    all.put("device_id", 3);
    all.put("local_rank_size", 8);
    all.put("io_direct", false);
    all.put("waiting_queue_depth", 7);
    all.put("running_queue_depth", 8);
    all.put("hf3fs_io_thread_num", 16);
    all.put("hf3fs_ior_entries", 1024);
    all.put("hf3fs_io_depth", -128);
    all.put("hf3fs_numa_id", 1);
    all.put("hf3fs_iov_size", 100 * MIB);
    all.put("iov_write_size", 4096 * MIB);
    all.put("ds3fs_library_path", "/opt/3fs/lib");
    all.put("hf3fs_mount_point", "/3fs");
    all.put("timeout_ms", 5);
    StoreConfig given = config(all);
    assertThat(Ds3fsConfig.from(given))
        .isEqualTo(
            new Ds3fsConfig(
                List.of("/3fs/a", "/3fs/b"),
                8,
                16,
                new RingSettings(1024, -128, 1),
                100 * MIB,
                4096 * MIB,
                "/opt/3fs/lib",
                "/3fs",
                TimeUnit.MILLISECONDS.toNanos(5)));
    StoreConfig ofFiles = Ds3fsConfig.ofFiles(given);
    assertThat(ofFiles.get(CommonKeys.DEVICE_ID)).isEqualTo(3);
    assertThat(ofFiles.get(ConfigKey.flag("io_direct"))).isFalse();
    assertThat(ofFiles.get(ConfigKey.integer("waiting_queue_depth"))).isEqualTo(7);
    assertThat(ofFiles.get(ConfigKey.integer("running_queue_depth"))).isEqualTo(8);
    assertThat(given.problems()).isEmpty();
  }

  @Test
  void reportsAllThatIsOutOfRangeOrDoesNotFit() {
    StoreConfig given =
        config(
            Map.of(
                "stream_number", 1025,
                "ior_entries", 8,
                "ior_depth", 9,
                "numa_id", -2,
                "iov_size", 99 * MIB));
    new Ds3fsStore().configure(given);
    assertThat(given.problems().stream().filter(ConfigProblem::isError).map(ConfigProblem::key))
        .containsExactlyInAnyOrder("stream_number", "ior_depth", "numa_id", "iov_size");
    assertThat(given.problems().toString()).contains("never fits into a ring of ior_entries 8");
  }

  @Test
  void takesEntriesAndDepthOfTheOriginal() {
    StoreConfig given = config(Map.of("ior_entries", 1, "ior_depth", 1));
    assertThat(Ds3fsConfig.from(given).rings()).isEqualTo(new RingSettings(1, 1, -1));
    assertThat(given.problems()).isEmpty();
  }

  @Test
  void namesEachKeyOnce() {
    assertThat(new Ds3fsStore().configKeys().stream().map(ConfigKey::name))
        .doesNotHaveDuplicates()
        .contains("ds3fs_capacity_gb", "ior_entries", "io_direct", "store_health.enabled")
        .doesNotContain("data_dir_shard_bytes", "ds3fs_io_engine", "ds3fs_data_trans_concurrency");
  }

  @Test
  void saysHowMuchSharedMemoryIsMissing() {
    Ds3fsConfig eightGb =
        Ds3fsConfig.from(
            config(
                Map.of(
                    "iov_read_size", 4096 * MIB,
                    "iov_write_size", 4096 * MIB,
                    "local_rank_size", 4)));
    assertThat(new SharedMemorySpace(40L << 30, 40L << 30).problem(eightGb, 1)).isNull();
    assertThat(new SharedMemorySpace(31L << 30, 31L << 30).problem(eightGb, 1))
        .contains("" + (32L << 30), "" + (31L << 30), "iov_read_size");
    assertThat(new SharedMemorySpace(40L << 30, 7L << 30).problem(eightGb, 1)).isNotNull();
    assertThat(new SharedMemorySpace(40L << 30, 40L << 30).problem(eightGb, 2)).isNotNull();
  }
}
