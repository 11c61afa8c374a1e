package ucm.store.cache.transfer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.platform.device.EngineDevice;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.pool.SlotPool;

/**
 * The memory and the slots of a store, or of several: with {@code share_buffer_enable} the stores of this
 * process that have the same instance, layout and capacity use one pool, whose memory is freed when the last
 * one has left. Each store reads from and writes to its own next stage. Thread-safe.
 */
final class CachePool {

  private record Key(String uniqueId, BlockLayout layout, long slots, CachePolicy policy) {}

  private static final ConcurrentMap<Key, CachePool> SHARED = new ConcurrentHashMap<>();

  final PoolMemory memory;
  final SlotPool slots;

  private final @Nullable Key key;

  /** The open stores, which write what is here; what one was to dump another one may bring. */
  final List<CacheRuntime> members = new CopyOnWriteArrayList<>();

  // Guarded by itself.
  private final List<EngineDevice> devices = new ArrayList<>();
  // Changed within an entry of SHARED only.
  private int users = 1;

  private CachePool(@Nullable Key key, PoolMemory memory, SlotPool slots) {
    this.key = key;
    this.memory = memory;
    this.slots = slots;
  }

  /**
   * A pool of the store's own, or the one that it shares; to be {@linkplain #leave left}.
   *
   * @param next may offer memory for a pool of its own
   * @param evictions counts what is evicted, for the first of those that share
   * @throws StoreException when there is not enough memory
   */
  static CachePool join(CacheConfig config, @Nullable Store next, StoreMetrics.Counter evictions) {
    if (config.isDividable()) {
      PoolMemory offered = PoolMemory.offered(config, next);
      if (offered != null) {
        return create(null, config, offered, evictions);
      }
      PoolBudget.Share share =
          new PoolBudget.Share(
              config.capacityBytes(), config.stride(), config.layout().shardCount());
      return PoolBudget.OF_PROCESS.join(
          share,
          bytes -> PoolMemory.requireRoom(config, bytes),
          first -> create(config, first, evictions));
    }
    if (!config.shared()) {
      return create(null, config, PoolMemory.of(config, next), evictions);
    }
    Key key = new Key(config.uniqueId(), config.layout(), config.slots(), config.policy());
    return SHARED.compute(
        key,
        (_, open) -> {
          if (open == null) {
            return create(key, config, PoolMemory.of(config, null), evictions);
          }
          open.users++;
          return open;
        });
  }

  private static CachePool create(
      @Nullable Key key, CacheConfig config, PoolMemory memory, StoreMetrics.Counter evictions) {
    int shards = config.layout().shardCount();
    return new CachePool(
        key, memory, new SlotPool(memory.slots(), shards, config.policy(), evictions));
  }

  private static CachePool create(CacheConfig config, int first, StoreMetrics.Counter evictions) {
    PoolMemory memory = PoolMemory.returnable(config, first);
    int shards = config.layout().shardCount();
    SlotPool slots =
        new SlotPool(memory.slots(), shards, config.policy(), evictions, memory::giveBack);
    slots.limit(first);
    return new CachePool(null, memory, slots);
  }

  /** Opens a user's device, which can copy from and to the slots. The pool releases it. */
  EngineDevice open(EngineDevice.Choice choice) {
    synchronized (devices) {
      boolean pinned = devices.stream().anyMatch(EngineDevice::isThere);
      // What was pinned twice would be refused.
      EngineDevice device = EngineDevice.open(choice, () -> memory, !pinned);
      devices.add(device);
      return device;
    }
  }

  /** Whether other stores may use it. */
  boolean isShared() {
    return key != null;
  }

  /** A user's last access is over. The last user frees the memory, and releases all devices before. */
  void leave() {
    if (key == null) {
      free();
      PoolBudget.OF_PROCESS.leave(this);
      return;
    }
    SHARED.computeIfPresent(
        key,
        (_, pool) -> {
          if (--users > 0) {
            return pool;
          }
          free();
          return null;
        });
  }

  private void free() {
    synchronized (devices) {
      devices.forEach(EngineDevice::release);
    }
    memory.free();
  }

  @Override
  public String toString() {
    return memory
        + (key == null
            ? ""
            : ", shared by the stores of this process (share_buffer_enable); ranks in processes of"
                + " their own meet in ucm serve");
  }
}
