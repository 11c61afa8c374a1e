package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.store.cache.CacheStore;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TestContext;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Stores on simulated 3FS for a test, and what all tests ask of them. */
final class TestDs3fs implements AutoCloseable {

  static final Duration PATIENCE = Duration.ofSeconds(60);

  final Path directory;
  final BlockLayout layout;
  final RecordingMetrics metrics = new RecordingMetrics();

  private final List<Store> opened = new ArrayList<>();

  TestDs3fs(Path directory, BlockLayout layout) {
    this.directory = directory;
    this.layout = layout;
  }

  Store open(Map<String, ?> more) {
    return open(more, System::nanoTime);
  }

  /** One whose tasks time out by another clock; what 3FS must answer in time goes by the system's. */
  Store open(Map<String, ?> more, LongSupplier clock) {
    return open(new Ds3fsStore(), null, more, clock);
  }

  /** A Cache with a pool of some GiB, upstream of a store. */
  Store openCache(Store next, double gib) {
    return open(
        new CacheStore(),
        next,
        Map.of("cache_buffer_capacity_gb", gib, "cache_device", "host", "cache_stream_number", 2),
        System::nanoTime);
  }

  private Store open(Store store, @Nullable Store next, Map<String, ?> more, LongSupplier clock) {
    Map<String, Object> settings = new TreeMap<>();
    if (next == null) {
      settings.putAll(SmallHf3fs.settings(directory));
    }
    settings.put("device_id", 0);
    settings.put("tensor_size", layout.tensorSize(0));
    settings.put("shard_size", layout.shardSize());
    settings.put("block_size", layout.blockSize());
    settings.putAll(more);
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    assertThat(config.hasErrors()).as("%s", config.problems()).isFalse();
    store.open(new TestContext(next, metrics, clock));
    opened.add(store);
    return store;
  }

  static TransferResult ended(Task task) throws InterruptedException {
    return task.await(PATIENCE);
  }

  TransferResult dump(Store store, BlockIds ids) throws InterruptedException {
    return ended(store.dump(memory(ids).fill().transfer()));
  }

  TransferResult dumpShard(Store store, BlockIds ids, int shard) throws InterruptedException {
    return ended(store.dump(layer(ids, shard).fill().transfer()));
  }

  /** Loads blocks; whatever ends well must be right. */
  TransferResult load(Store store, BlockIds ids) throws InterruptedException {
    return load(store, memory(ids));
  }

  TransferResult loadShard(Store store, BlockIds ids, int shard) throws InterruptedException {
    return load(store, layer(ids, shard));
  }

  private static TransferResult load(Store store, TransferMemory memory)
      throws InterruptedException {
    TransferResult result = ended(store.load(memory.transfer()));
    for (int i = 0; i < memory.shardCount(); i++) {
      if (!result.failedShards().get(i)) {
        memory.check(i);
      }
    }
    memory.checkGuards();
    return result;
  }

  TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids);
  }

  private TransferMemory layer(BlockIds ids, int shard) {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    return new TransferMemory(layout, Placement.SCATTERED, ids, shards);
  }

  /** Names of the files being written. */
  List<String> temps() throws IOException {
    return names(directory.resolve(Ds3fsFiles.TEMP_FOLDER));
  }

  static List<String> names(Path folder) throws IOException {
    if (!Files.exists(folder)) {
      return List.of();
    }
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).toList();
    }
  }

  @Override
  public void close() {
    opened.reversed().forEach(Store::close);
    opened.clear();
  }
}
