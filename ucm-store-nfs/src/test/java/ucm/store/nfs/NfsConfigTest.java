package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

final class NfsConfigTest {

  private static StoreConfig config(Map<String, ?> more) {
    Map<String, Object> all = new HashMap<>(TestNfs.settings("/mnt/test"));
    all.putAll(more);
    return StoreConfig.of(all);
  }

  private static NfsConfig read(Map<String, ?> more) {
    StoreConfig config = config(more);
    NfsConfig read = NfsConfig.from(NfsConfig.ofFiles(config)).orElseThrow();
    assertThat(config.problems()).isEmpty();
    return read;
  }

  @Test
  void hasTheDefaultsOfTheOriginal() {
    NfsConfig read = read(Map.of());
    assertThat(read.device().streams()).isEqualTo(32);
    assertThat(read.slots()).isEqualTo(512);
    assertThat(read.device().wanted()).isEqualTo("auto");
    assertThat(find("nfs_gc_trigger_threshold_ratio").defaultValue()).isEqualTo(0.98);
    assertThat(find("nfs_gc_enable").defaultValue()).isEqualTo(true);
    assertThat(find("nfs_capacity_gb").defaultValue()).isEqualTo(0.0);
  }

  private static ConfigKey<?> find(String name) {
    return new NfsStore()
        .configKeys().stream().filter(key -> key.name().equals(name)).findFirst().orElseThrow();
  }

  @Test
  void knowsEveryKeyOfTheOriginal() {
    List<String> names = new ArrayList<>();
    new NfsStore()
        .configKeys()
        .forEach(
            key -> {
              names.add(key.name());
              names.addAll(key.aliases());
            });
    assertThat(names)
        .doesNotHaveDuplicates()
        .contains(
            "storage_backends",
            "transferStreamNumber",
            "stream_number",
            "kv_block_size",
            "io_size",
            "use_direct",
            "buffer_number",
            "storage_capacity",
            "recycle_enable",
            "recycle_threshold_ratio");
  }

  @Test
  void namesOfTheOriginalReachTheStoreOfFiles() {
    Map<String, Object> more = new HashMap<>();
    more.put("stream_number", 8);
    more.put("use_direct", true);
    more.put("storage_capacity", 3L << 30);
    more.put("recycle_enable", false);
    more.put("recycle_threshold_ratio", 0.5);
    StoreConfig files = NfsConfig.ofFiles(config(more));
    assertThat(files.get(ConfigKey.integer("nfs_data_trans_concurrency"))).isEqualTo(8);
    assertThat(files.get(ConfigKey.flag("io_direct"))).isTrue();
    assertThat(files.get(ConfigKey.number("nfs_capacity_gb"))).isEqualTo(3.0);
    assertThat(files.get(ConfigKey.flag("nfs_gc_enable"))).isFalse();
    assertThat(files.get(ConfigKey.number("nfs_gc_trigger_threshold_ratio"))).isEqualTo(0.5);
    assertThat(files.get(ConfigKey.integer("data_dir_shard_bytes"))).isZero();
    assertThat(read(more).device().streams()).isEqualTo(8);
  }

  @Test
  void blockSizeMayHaveTheNameOfTheOriginal() {
    Map<String, Object> all = new HashMap<>(TestNfs.settings("/mnt/test"));
    all.put("kv_block_size", all.remove("block_size"));
    StoreConfig config = StoreConfig.of(all);
    NfsStore store = new NfsStore();
    store.configure(config);
    assertThat(config.problems()).isEmpty();
    assertThat(NfsConfig.from(NfsConfig.ofFiles(config)).orElseThrow().layout())
        .isEqualTo(TestNfs.LAYOUT);
  }

  @Test
  void buffersOfAnotherSizeArePutTogetherToShards() {
    assertThat(read(Map.of("buffer_number", 100, "io_size", 4096)).slots()).isEqualTo(25);
  }

  @Test
  void reportsEveryFaultAtOnceWithTheNameThatTheUserWrote() {
    StoreConfig config =
        config(
            Map.of(
                "transferStreamNumber", 0,
                "recycle_threshold_ratio", 7,
                "buffer_number", 4,
                "io_size", 100,
                "nfs_verify_nothing", 1,
                "verify", "sometimes"));
    new NfsStore().configure(config);
    assertThat(config.problems().stream().filter(ConfigProblem::isError))
        .extracting(ConfigProblem::key)
        .containsExactlyInAnyOrder(
            "transferStreamNumber", "recycle_threshold_ratio", "io_size", "verify");
  }
}
