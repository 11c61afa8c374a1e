package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.common.FileSeam;
import ucm.store.common.LibcFiles;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TestContext;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Stores that share one directory, for a test, and what all tests ask of them. */
final class TestStores implements AutoCloseable {

  static final Duration PATIENCE = Duration.ofSeconds(60);

  final Path directory;
  final BlockLayout layout;
  final RecordingMetrics metrics = new RecordingMetrics();

  private final List<PosixStore> stores = new ArrayList<>();

  TestStores(Path directory, BlockLayout layout) {
    this.directory = directory;
    this.layout = layout;
  }

  PosixStore open() {
    return open(new LibcFiles(), System::nanoTime, Map.of());
  }

  PosixStore open(Map<String, Object> more) {
    return open(new LibcFiles(), System::nanoTime, more);
  }

  PosixStore open(FileSeam files, LongSupplier clock, Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("storage_backends", directory.toString());
    settings.put("device_id", 0);
    settings.put("tensor_size", layout.tensorSize(0));
    settings.put("shard_size", layout.shardSize());
    settings.put("block_size", layout.blockSize());
    settings.putAll(more);
    StoreConfig config = StoreConfig.of(settings);
    PosixStore store = new PosixStore(files);
    store.configure(config);
    assertThat(config.hasErrors()).as("%s", config.problems()).isFalse();
    store.open(new TestContext(null, metrics, clock));
    stores.add(store);
    return store;
  }

  /** The store that was opened last. */
  PosixStore store() {
    return stores.getLast();
  }

  static TransferResult ended(Task task) throws InterruptedException {
    return task.await(PATIENCE);
  }

  /**
   * Dumps whole blocks by a store that may take its time, whatever the settings say, and is closed by
   * then. A worker may still be on its way out when its task has ended; here none is.
   */
  void dumpByAnother(Map<String, Object> settings, BlockIds... blocks) throws InterruptedException {
    Map<String, Object> patient = new TreeMap<>(settings);
    patient.put("timeout_ms", 600_000);
    patient.put("store_health.enabled", false);
    PosixStore store = open(patient);
    for (BlockIds ids : blocks) {
      dump(store, ids);
    }
    store.close();
    stores.remove(store);
  }

  /** Dumps whole blocks with their bytes. */
  void dump(Store store, BlockIds ids) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids).fill();
    ended(store.dump(memory.transfer())).requireOk();
  }

  /** Dumps one shard of each block with its bytes. */
  TransferResult dumpShard(Store store, BlockIds ids, int shard) throws InterruptedException {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    TransferMemory memory = new TransferMemory(layout, Placement.SCATTERED, ids, shards).fill();
    return ended(store.dump(memory.transfer()));
  }

  /** Loads blocks; whatever ends well must be right. */
  TransferResult load(Store store, BlockIds ids) throws InterruptedException {
    return load(store, TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids));
  }

  /** Loads one shard of each block; whatever ends well must be right. */
  TransferResult loadShard(Store store, BlockIds ids, int shard) throws InterruptedException {
    int[] shards = new int[ids.size()];
    Arrays.fill(shards, shard);
    return load(store, new TransferMemory(layout, Placement.SCATTERED, ids, shards));
  }

  /** Loads into some memory; whatever ends well must be right. */
  static TransferResult load(Store store, TransferMemory memory) throws InterruptedException {
    TransferResult result = ended(store.load(memory.transfer()));
    for (int i = 0; i < memory.shardCount(); i++) {
      if (!result.failedShards().get(i)) {
        memory.check(i);
      }
    }
    memory.checkGuards();
    return result;
  }

  /** The file of a block, with the default folders. */
  Path file(BlockIds ids, int i) {
    return directory.resolve(ids.hex(i).substring(0, 3)).resolve(ids.hex(i));
  }

  /** The temporary files below the directory; some may be removed meanwhile. */
  List<Path> temps() throws IOException {
    return SmallSpace.below(directory).keySet().stream()
        .filter(path -> path.toString().endsWith(".tmp"))
        .toList();
  }

  /** The files of a folder; none when it is missing. */
  List<Path> in(String folder) throws IOException {
    Path path = directory.resolve(folder);
    if (!Files.exists(path)) {
      return List.of();
    }
    try (Stream<Path> all = Files.list(path)) {
      return all.toList();
    }
  }

  /** Descriptors of this process that refer to something below the directory. */
  List<Path> openFiles() throws IOException {
    List<Path> open = new ArrayList<>();
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      for (Path descriptor : all.toList()) {
        try {
          Path target = Files.readSymbolicLink(descriptor);
          if (target.startsWith(directory)) {
            open.add(target);
          }
        } catch (NoSuchFileException e) {
          // It was closed since, as the list's own always is.
        }
      }
    }
    return open;
  }

  @Override
  public void close() {
    stores.forEach(PosixStore::close);
  }
}
