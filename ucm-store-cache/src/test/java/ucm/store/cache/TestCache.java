package ucm.store.cache;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreContext;
import ucm.testkit.RecordingMetrics;

/** Opens Cache stores for tests, with what they count, and closes them. */
final class TestCache implements AutoCloseable {

  final CacheStore store = new CacheStore();
  final RecordingMetrics metrics = new RecordingMetrics();
  private final @Nullable Store backend;

  /**
   * An open store.
   *
   * @param backend not opened yet, closed with this; null for none
   * @param slots of the pool
   * @param more settings
   */
  TestCache(BlockLayout layout, @Nullable Store backend, int slots, Map<String, Object> more) {
    this(layout, backend, slots, more, System::nanoTime);
  }

  /** One whose tasks are due by a clock of the test. */
  TestCache(
      BlockLayout layout,
      @Nullable Store backend,
      int slots,
      Map<String, Object> more,
      LongSupplier clock) {
    this.backend = backend;
    Map<String, Object> settings = new TreeMap<>(keys(layout));
    if (backend != null) {
      backend.configure(StoreConfig.of(settings));
      backend.open(StoreContext.of(null));
    }
    settings.put("cache_buffer_capacity_gb", gib(layout, slots));
    settings.putAll(more);
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    if (config.hasErrors()) {
      throw new IllegalArgumentException(config.problems().toString());
    }
    store.open(
        new StoreContext() {
          @Override
          public @Nullable Store backend() {
            return backend;
          }

          @Override
          public RecordingMetrics metrics() {
            return metrics;
          }

          @Override
          public LongSupplier nanoClock() {
            return clock;
          }
        });
  }

  /** The pool's size as the key says it, for so many slots. */
  static double gib(BlockLayout layout, long slots) {
    return (double) (slots * PoolMemory.stride(layout.shardSize())) / (1L << 30);
  }

  /** What an engine configures for a layout. */
  static Map<String, Object> keys(BlockLayout layout) {
    Map<String, Object> keys = new TreeMap<>();
    List<Long> sizes = new ArrayList<>();
    for (int tensor = 0; tensor < layout.tensorCount(); tensor++) {
      sizes.add(layout.tensorSize(tensor));
    }
    keys.put("tensor_size_list", sizes);
    keys.put("shard_size", layout.shardSize());
    keys.put("block_size", layout.blockSize());
    keys.put("device_id", 0);
    return keys;
  }

  OpenCache opened() {
    OpenCache opened = store.opened();
    if (opened == null) {
      throw new IllegalStateException("a scheduler has none");
    }
    return opened;
  }

  SlotDirectory pool() {
    return opened().pool;
  }

  /** Waits until a task wants slots and finds none. */
  void awaitWanting() {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (pool().wanting() == 0) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("no task wants a slot");
      }
      Thread.onSpinWait();
    }
  }

  /**
   * Waits until nobody refers to a slot: a load that has expired is over for the engine before the copy
   * threads have come to its slots.
   */
  void awaitUnreferenced() {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (pool().referenced() > 0) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError(pool().referenced() + " slots are referenced for ever");
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }

  @Override
  public void close() {
    try {
      store.close();
    } finally {
      if (backend != null) {
        backend.close();
      }
    }
  }
}
