package ucm.example.hello;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/** What the store is told. Each key is declared once; checks and documentation follow from that. */
record HelloConfig(
    BlockLayout layout,
    boolean scheduler,
    Path directory,
    int threads,
    boolean sync,
    long timeoutNanos,
    int queueDepth) {

  private static final ConfigKey<String> DIRECTORY =
      ConfigKey.text("hello_directory").require().doc("Directory that holds the blocks.");

  private static final ConfigKey<Integer> THREADS =
      ConfigKey.integer("hello_threads")
          .range(1, 256)
          .defaultTo(4)
          .unit("threads")
          .doc("Threads that read and write files.");

  private static final ConfigKey<Boolean> SYNC =
      ConfigKey.flag("hello_sync")
          .defaultTo(false)
          .doc("Whether a block shall also survive a power loss, which costs a flush of the disk.");

  static final List<ConfigKey<?>> KEYS =
      Stream.concat(
              Stream.of(
                  DIRECTORY,
                  THREADS,
                  SYNC,
                  CommonKeys.DEVICE_ID,
                  CommonKeys.TIMEOUT_MS,
                  CommonKeys.WAITING_QUEUE_DEPTH),
              CommonKeys.LAYOUT_KEYS.stream())
          .toList();

  /** Reads all keys; nothing when one of them is bad, which the configuration has recorded. */
  static Optional<HelloConfig> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    boolean scheduler = config.get(CommonKeys.DEVICE_ID) < 0;
    Path directory = Path.of(config.get(DIRECTORY));
    int threads = config.get(THREADS);
    boolean sync = config.get(SYNC);
    long timeoutNanos = config.get(CommonKeys.TIMEOUT_MS) * 1_000_000L;
    int queueDepth = config.get(CommonKeys.WAITING_QUEUE_DEPTH);
    if (config.hasErrors() || layout.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(
        new HelloConfig(
            layout.get(), scheduler, directory, threads, sync, timeoutNanos, queueDepth));
  }
}
