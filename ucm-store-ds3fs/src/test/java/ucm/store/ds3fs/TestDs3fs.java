package ucm.store.ds3fs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.cache.CacheStore;
import ucm.testkit.StoreFixture;

/** Stores on simulated 3FS for a test, and what all tests ask of them. */
final class TestDs3fs extends StoreFixture {

  final Path directory;

  TestDs3fs(Path directory, BlockLayout layout) {
    super(layout);
    this.directory = directory;
  }

  Store open(Map<String, ?> more) {
    return open(more, System::nanoTime);
  }

  /** One whose tasks time out by another clock; what 3FS must answer in time goes by the system's. */
  Store open(Map<String, ?> more, LongSupplier clock) {
    Map<String, Object> settings = new TreeMap<>(SmallHf3fs.settings(directory));
    settings.putAll(more);
    return open(new Ds3fsStore(), null, settings, clock);
  }

  /** A Cache with a pool of some GiB, upstream of a store. */
  Store openCache(Store next, double gib) {
    return open(
        new CacheStore(),
        next,
        Map.of("cache_buffer_capacity_gb", gib, "cache_device", "host", "cache_stream_number", 2),
        System::nanoTime);
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
}
