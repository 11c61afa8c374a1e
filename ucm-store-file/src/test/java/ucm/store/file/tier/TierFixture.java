package ucm.store.file.tier;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.space.SpaceLimit;
import ucm.testkit.StoreFixture;
import ucm.testkit.fault.MemoryStore;

/** An upper tier on files, above a stage that a test switches. */
final class TierFixture extends StoreFixture {

  final MemoryStore.Volume volume = new MemoryStore.Volume();
  final SwitchedStage stage = new SwitchedStage(volume);
  final Path directory;
  LocalFileStore files = new LocalFileStore();

  TierFixture(Path directory) {
    super(SmallSpace.LAYOUT);
    this.directory = directory;
    open(stage, Map.of());
  }

  /** Opens the upper tier. */
  LocalTier open(Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("storage_backends", directory.toString());
    settings.put("data_dir_shard_bytes", 1);
    settings.put("store_health.health_check_interval_s", 1);
    settings.put("store_health.health_check_timeout_s", 1);
    settings.put("timeout_ms", 20_000);
    settings.putAll(more);
    files = new LocalFileStore();
    return open(new LocalTier(files), stage, settings, System::nanoTime);
  }

  /** Room for some blocks; rounds are made by the test, but for the first. */
  static Map<String, Object> capacity(int blocks, Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("local_capacity_gb", (double) (blocks * SmallSpace.FILE) / SpaceLimit.GB);
    settings.put("local_gc_check_interval_sec", 86_400);
    settings.put("local_gc_trigger_threshold_ratio", 0.5);
    settings.put("local_gc_recycle_percent", 0.1);
    settings.putAll(more);
    return settings;
  }

  /** Has the collector remove blocks that are not in use; a block used just now is left alone. */
  void collect() throws InterruptedException {
    files.collector().awaitFirstRound();
    files.collector().makeRound();
  }
}
