package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.testkit.StoreFixture;

/** Stores on one directory, for a test, and what all tests ask of them. */
final class TestNfs extends StoreFixture {

  static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16384, 65536);

  final Path directory;

  TestNfs(Path directory) {
    super(LAYOUT);
    this.directory = directory;
  }

  /** What an engine and an operator say. */
  static Map<String, Object> settings(String directory) {
    Map<String, Object> settings = workerKeys(LAYOUT);
    settings.put("storage_backends", directory);
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
    return open(new NfsStore(files), null, settings, clock);
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
    awaitThat(() -> what, condition);
  }

  /** The same; what it waits for is said when it has not happened. */
  static void awaitThat(Supplier<String> what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - end).as(what).isNegative();
      Thread.onSpinWait();
    }
  }
}
