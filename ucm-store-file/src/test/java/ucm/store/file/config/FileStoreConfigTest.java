package ucm.store.file.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.MemoryRegion;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;

final class FileStoreConfigTest {

  private static final Map<String, Object> LEAST =
      Map.of("storage_backends", "/cache", "block_size", 4096);
  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);

  @Test
  void hasTheDefaultsOfTheOriginal() {
    StoreConfig config = StoreConfig.of(LEAST);
    FileStoreConfig read = FileStoreConfig.from(LocalFileStore.KIND, config).orElseThrow();
    assertThat(config.problems()).isEmpty();
    assertThat(config.get(CommonKeys.RUNNING_QUEUE_DEPTH)).isEqualTo(524_288);
    assertThat(read)
        .isEqualTo(
            new FileStoreConfig(
                LocalFileStore.KIND,
                List.of("/cache"),
                LAYOUT,
                -1,
                List.of(),
                false,
                false,
                30_000,
                8192,
                128,
                16,
                32,
                4,
                false,
                1 << 22,
                3,
                FileStoreConfig.Durability.NONE,
                FileStoreConfig.Verify.FULL,
                false,
                0,
                0.1,
                new FileStoreConfig.Gc(true, 0.98, 0.03, 30, 16),
                new FileStoreConfig.Health(true, 10_000_000_000L, 3_000_000_000L, 8, 2)));
    assertThat(read.isScheduler()).isTrue();
  }

  @Test
  void readsEveryKey() {
    Map<String, Object> all = new HashMap<>();
    all.put("storage_backends", List.of("/a", "/b"));
    all.put("tensor_size", 100);
    all.put("shard_size", 200);
    all.put("block_size", 800);
    all.put("device_id", 3);
    all.put("cpu_affinity_cores", List.of(0, 2));
    all.put("io_direct", true);
    all.put("timeout_ms", 1000);
    all.put("waiting_queue_depth", 10);
    all.put("running_queue_depth", 20);
    all.put("local_io_engine", "aio");
    all.put("local_data_trans_concurrency", 7);
    all.put("local_lookup_concurrency", 8);
    all.put("local_open_concurrency", 9);
    all.put("local_commit_concurrency", 10);
    all.put("lookup_mode", "exclusive");
    all.put("local_index_max_blocks", 1000);
    all.put("data_dir_shard_bytes", 0);
    all.put("durability", "full");
    all.put("verify", "off");
    all.put("accept_unverified", true);
    all.put("local_capacity_gb", 1.5);
    all.put("local_min_free_gb", 2.5);
    all.put("local_gc_enable", false);
    all.put("local_gc_trigger_threshold_ratio", 0.9);
    all.put("local_gc_recycle_percent", 0.2);
    all.put("local_gc_check_interval_sec", 60);
    all.put("local_gc_concurrency", 2);
    all.put("store_health.enabled", false);
    all.put("store_health.health_check_interval_s", 20);
    all.put("store_health.health_check_timeout_s", 6);
    all.put("store_health.health_window_size", 16);
    all.put("store_health.failure_threshold", 4);
    StoreConfig config = StoreConfig.of(all);
    assertThat(config.get(CommonKeys.RUNNING_QUEUE_DEPTH)).isEqualTo(20);
    assertThat(FileStoreConfig.from(LocalFileStore.KIND, config))
        .contains(
            new FileStoreConfig(
                LocalFileStore.KIND,
                List.of("/a", "/b"),
                BlockLayout.uniform(100, 200, 800),
                3,
                List.of(0L, 2L),
                true,
                true,
                1000,
                10,
                7,
                8,
                9,
                10,
                true,
                1000,
                0,
                FileStoreConfig.Durability.FULL,
                FileStoreConfig.Verify.OFF,
                true,
                1.5,
                2.5,
                new FileStoreConfig.Gc(false, 0.9, 0.2, 60, 2),
                new FileStoreConfig.Health(false, 20_000_000_000L, 6_000_000_000L, 16, 4)));
    List<String> listed = LocalFileStore.KIND.keys().all().stream().map(ConfigKey::name).toList();
    assertThat(listed)
        .doesNotHaveDuplicates()
        .containsAll(all.keySet())
        .contains("tensor_size_list");
    assertThat(config.problems()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "local_gc_enable=true local_gc_concurrency=2, 2, local_capacity_gb is 0",
    "local_capacity_gb=1 local_gc_precise_mode=false local_gc_shard_sample_ratio=0.5"
        + " local_gc_max_recycle_count_per_shard=7, 1, has no effect",
    "io_direct=true local_io_engine=io_uring, 1, runs as aio",
    "store_health.health_window_size=2 store_health.failure_threshold=3, 1, health_window_size"
  })
  void warnsOfWhatHasNoEffect(String keys, int warnings, String hint) {
    StoreConfig config = StoreConfig.of(with(keys));
    assertThat(FileStoreConfig.from(LocalFileStore.KIND, config))
        .hasValueSatisfying(read -> assertThat(read.usesAio()).isEqualTo(read.ioDirect()));
    assertThat(config.problems())
        .hasSize(warnings)
        .noneMatch(ConfigProblem::isError)
        .allSatisfy(warning -> assertThat(warning.message()).contains(hint));
  }

  private static Map<String, Object> with(String keys) {
    Map<String, Object> all = new TreeMap<>(LEAST);
    for (String key : keys.split(" ")) {
      String value = key.substring(key.indexOf('=') + 1);
      all.put(key.substring(0, key.indexOf('=')), number(value));
    }
    return all;
  }

  private static Object number(String value) {
    return value.matches("[-.\\d]+") ? (Object) Double.valueOf(value) : value;
  }

  @ParameterizedTest
  @CsvSource({
    "local_io_engine, aio, needs io_direct: true",
    "local_io_engine, io_uring, needs io_direct: true",
    "local_io_engine, uring, 'one of psync, aio, io_uring'",
    "io_direct, perhaps, true or false",
    "data_dir_shard_bytes, 6, 0 to 5",
    "lookup_mode, private, 'shared, exclusive'",
    "local_index_max_blocks, -1, 0 to 1073741824",
    "durability, fsync, 'none, fdatasync, full'",
    "verify, yes, 'full, sample, off'",
    "local_data_trans_concurrency, 0, 1 to 1024",
    "local_capacity_gb, -1, 0 or more",
    "storage_backends, /a:/b:/a, twice",
    "storage_backends, /a:/b:/a/, twice",
    "storage_backends, /a:/b/../a, twice",
    "store_health.failure_threshold, 0, 1 to 1024",
    "local_index_max_blocks, 0 lookup_mode=exclusive, set lookup_mode to shared"
  })
  void refusesWhatItCannotDoAndSaysWhatItCan(String key, String value, String hint) {
    StoreConfig config = StoreConfig.of(with(key + "=" + value));
    assertThat(FileStoreConfig.from(LocalFileStore.KIND, config)).isEmpty();
    assertThat(config.problems().stream().filter(ConfigProblem::isError))
        .singleElement()
        .satisfies(problem -> assertThat(problem.key()).isEqualTo(key))
        .satisfies(problem -> assertThat(problem.message()).contains(hint));
  }

  @Test
  void reportsEveryBadKeyAtOnce() {
    StoreConfig config =
        StoreConfig.of(
            Map.of("local_io_engine", "aio", "verify", "maybe", "data_dir_shard_bytes", 9));
    assertThat(FileStoreConfig.from(LocalFileStore.KIND, config)).isEmpty();
    assertThat(config.problems().stream().map(ConfigProblem::key))
        .contains(
            "local_io_engine", "verify", "data_dir_shard_bytes", "storage_backends", "block_size");
  }

  @Test
  void isNotOpenedWithErrors() {
    LocalFileStore store = new LocalFileStore();
    store.configure(StoreConfig.of(Map.of()));
    assertThatThrownBy(() -> store.open(StoreContext.of(null)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("configuration has errors");
  }

  @Test
  void takesNoNextStage() {
    LocalFileStore store = new LocalFileStore();
    store.configure(StoreConfig.of(LEAST));
    assertThatThrownBy(() -> store.open(StoreContext.of(new LocalFileStore())))
        .hasMessage("Local is a last stage and takes no next stage; found Local");
  }

  @Test
  void saysWhyADirectoryCannotBeUsed(@TempDir Path directory) throws Exception {
    Path file = Files.createFile(directory.resolve("file"));
    for (Path bad : List.of(file, file.resolve("below"))) {
      LocalFileStore store = new LocalFileStore();
      store.configure(
          StoreConfig.of(Map.of("storage_backends", bad.toString(), "block_size", 4096)));
      assertThatThrownBy(() -> store.open(StoreContext.of(null)))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(bad.toString())
          .hasMessageContaining("storage_backends");
    }
  }

  @Test
  void refusesMemoryOfADevice(@TempDir Path directory) throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open();
      BlockIds ids = BlockBytes.ids(1, 1);
      MemoryRegion device = MemoryRegion.device(0, 0, 4096);
      Transfer transfer = Transfer.packed(LAYOUT).shard(ids, 0, 0).piece(device, 0).build();
      assertThatThrownBy(() -> store.load(transfer))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("Cache|Local");
    }
  }
}
