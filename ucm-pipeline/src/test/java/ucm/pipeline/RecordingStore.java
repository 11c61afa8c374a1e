package ucm.pipeline;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.StoreCatalog;

/** A stage that writes into a journal what is asked of it, and fails where a test wants it to. */
public final class RecordingStore implements Store, IndexLookup, MemoryProvider {

  /** What stages of a real pipeline declare, in short. */
  static final List<ConfigKey<?>> CACHE_KEYS =
      List.of(
          CommonKeys.DEVICE_ID,
          CommonKeys.SHARD_SIZE,
          CommonKeys.BLOCK_SIZE,
          CommonKeys.TIMEOUT_MS,
          ConfigKey.longInteger("cache_buffer_capacity_gb")
              .range(1, 65_536)
              .defaultDescribed("256, or 32 when not shared")
              .unit("GiB")
              .doc("Size of the host buffer."),
          ConfigKey.flag("use_gdr").defaultTo(false).doc("GPUDirect RDMA."),
          ConfigKey.integer("cache_stream_number")
              .range(1, 32)
              .defaultTo(4)
              .unit("streams")
              .doc("Copy streams."));

  static final List<ConfigKey<?>> POSIX_KEYS =
      List.of(
          CommonKeys.STORAGE_BACKENDS,
          CommonKeys.IO_DIRECT,
          CommonKeys.BLOCK_SIZE,
          CommonKeys.TIMEOUT_MS,
          ConfigKey.choice("posix_io_engine", "psync", "aio").defaultTo("psync").doc("I/O engine."),
          ConfigKey.number("posix_capacity_gb").atLeast(0).defaultTo(0.0).doc("Capacity."),
          ConfigKey.flag("store_health.enabled").defaultTo(true).doc("Circuit breaker."),
          ConfigKey.integer("store_health.failure_threshold")
              .range(1, 8)
              .defaultTo(2)
              .doc("Trips."));

  static final List<ConfigKey<?>> NFS_KEYS =
      List.of(
          CommonKeys.STORAGE_BACKENDS,
          ConfigKey.integer("transferStreamNumber")
              .range(1, 1024)
              .defaultTo(32)
              .alias("stream_number")
              .doc("Worker threads."));

  private final String name;
  private final List<ConfigKey<?>> keys;
  private final List<String> journal;
  private Consumer<String> trap = step -> {};
  private Map<String, Object> suggestions = Map.of();
  private @Nullable StoreConfig config;
  private @Nullable StoreContext context;

  public RecordingStore(String name, List<ConfigKey<?>> keys, List<String> journal) {
    this.name = name;
    this.keys = keys;
    this.journal = journal;
  }

  /** A catalogue of stores that declare the keys of Cache, Posix, Nfs and Fake. */
  public static StoreCatalog catalog(List<String> journal) {
    return StoreCatalog.of(
        Stream.of(
                new RecordingStore("Cache", CACHE_KEYS, journal),
                new RecordingStore("Posix", POSIX_KEYS, journal),
                new RecordingStore("Nfs", NFS_KEYS, journal),
                new RecordingStore("Fake", List.of(), journal))
            .collect(Collectors.toMap(Store::name, RecordingStore::fresh)));
  }

  private static Supplier<Store> fresh(RecordingStore model) {
    return () -> new RecordingStore(model.name, model.keys, model.journal);
  }

  /** Called with the name of what is asked, as {@code open} or {@code lookup}, and may throw. */
  public RecordingStore trap(Consumer<String> newTrap) {
    this.trap = newTrap;
    return this;
  }

  RecordingStore suggests(Map<String, Object> values) {
    this.suggestions = values;
    return this;
  }

  /** What it was configured with. */
  StoreConfig config() {
    return Objects.requireNonNull(config);
  }

  @Override
  public Map<String, Object> suggestions() {
    return suggestions;
  }

  public static Consumer<String> failsAt(String step) {
    return now -> {
      if (now.equals(step)) {
        throw new StoreException("no " + step + " today");
      }
    };
  }

  @Nullable StoreContext context() {
    return context;
  }

  private void note(String step) {
    journal.add(name + "." + step);
    trap.accept(step);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return keys;
  }

  @Override
  public void configure(StoreConfig config) {
    note("configure");
    this.config = config;
    for (ConfigKey<?> key : keys) {
      config.get(key);
    }
  }

  @Override
  public void open(StoreContext newContext) {
    this.context = newContext;
    Store next = newContext.next();
    journal.add(name + ".backend=" + (next == null ? "none" : next.name()));
    note("open");
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    note("lookup");
    BitSet all = new BitSet();
    all.set(0, ids.size());
    return all;
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    note("lookupKnown");
    return null;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    note("lookupPrefix");
    return ids.size() - 1;
  }

  @Override
  public void prefetch(BlockIds ids) {
    note("prefetch");
  }

  @Override
  public void notePrompt(BlockIds ids) {
    note("notePrompt");
  }

  @Override
  public Task load(Transfer transfer) {
    note("load");
    return new TransferTask(1, transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    note("dump");
    return new TransferTask(2, transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) {
    note("flush");
    return FlushResult.clean();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    note("durable");
    return new BitSet();
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    note("offerMemory");
    return null;
  }

  @Override
  public void close() {
    note("close");
  }

  /** Values an engine would add. */
  static Map<String, Object> engineValues() {
    return Map.of("block_size", 1 << 20, "shard_size", 1 << 16, "device_id", 0);
  }
}
