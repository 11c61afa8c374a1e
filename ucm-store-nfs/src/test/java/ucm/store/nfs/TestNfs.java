package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TestContext;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Stores on one directory, for a test, and what all tests ask of them. */
final class TestNfs implements AutoCloseable {

  static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16384, 65536);
  static final Duration PATIENCE = Duration.ofSeconds(60);

  final Path directory;
  final RecordingMetrics metrics = new RecordingMetrics();

  private final List<NfsStore> stores = new ArrayList<>();

  TestNfs(Path directory) {
    this.directory = directory;
  }

  /** What an engine and an operator say. */
  static Map<String, Object> settings(String directory) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("storage_backends", directory);
    settings.put("device_id", 0);
    settings.put("tensor_size", LAYOUT.tensorSize(0));
    settings.put("shard_size", LAYOUT.shardSize());
    settings.put("block_size", LAYOUT.blockSize());
    return settings;
  }

  NfsStore open(Map<String, Object> more) {
    return open(new LibcFileOperations(), more);
  }

  NfsStore open(FileOperations files, Map<String, Object> more) {
    return open(files, System::nanoTime, more);
  }

  NfsStore open(FileOperations files, LongSupplier clock, Map<String, Object> more) {
    Map<String, Object> settings = settings(directory.toString());
    settings.putAll(more);
    StoreConfig config = StoreConfig.of(settings);
    NfsStore store = new NfsStore(files);
    store.configure(config);
    assertThat(config.hasErrors()).as("%s", config.problems()).isFalse();
    store.open(new TestContext(null, metrics, clock));
    stores.add(store);
    return store;
  }

  static TransferResult dump(Store store, BlockIds ids) throws InterruptedException {
    return store.dump(memory(ids).fill().transfer()).await(PATIENCE);
  }

  /** Loads blocks; whatever ends well must be right. */
  static TransferResult load(Store store, BlockIds ids) throws InterruptedException {
    TransferMemory memory = memory(ids);
    TransferResult result = store.load(memory.transfer()).await(PATIENCE);
    for (int i = 0; i < memory.shardCount(); i++) {
      if (!result.failedShards().get(i)) {
        memory.check(i);
      }
    }
    memory.checkGuards();
    return result;
  }

  static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }

  /** The files below a folder, as they are named there. */
  List<String> files(String folder) throws IOException {
    Path from = directory.resolve(folder);
    if (!Files.exists(from)) {
      return List.of();
    }
    try (Stream<Path> all = Files.walk(from)) {
      return all.filter(Files::isRegularFile)
          .map(path -> directory.relativize(path).toString())
          .sorted()
          .toList();
    }
  }

  /** The files of blocks that are being written. */
  List<String> temps() throws IOException {
    return files("data").stream().filter(name -> name.endsWith(".act")).toList();
  }

  /** Waits for something that happens in the background. */
  static void awaitThat(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - end).as(what).isNegative();
      Thread.onSpinWait();
    }
  }

  @Override
  public void close() {
    stores.forEach(NfsStore::close);
  }
}
