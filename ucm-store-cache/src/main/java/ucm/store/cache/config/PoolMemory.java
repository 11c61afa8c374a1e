package ucm.store.cache.config;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.device.SlotMemory;
import ucm.platform.libc.FileException;
import ucm.platform.memory.HugeMemory;
import ucm.platform.memory.SharedMemory;
import ucm.platform.thread.ThreadEnd;

/**
 * The bytes of the pool, cut into slots of one shard, each starting on a page (4096 bytes) so that
 * direct I/O works on it.
 *
 * <p>A private pool is one allocation, on huge pages as far as the system has them. Fresh memory is slow to touch,
 * so it is {@linkplain #populate given} ahead of its use, in the background; but to a pool which divides its room with others
 * at the start. Memory offered by the next stage is taken as it is. Owned by the
 * store; freed once.
 */
public final class PoolMemory implements SlotMemory {

  // So little that closing does not wait for long.
  private static final long BYTES_AT_ONCE = 8L << 20;

  /** Of {@link #descriptor}: other processes cannot map it. */
  public static final int NOT_SHARED = -1;

  private final @Nullable Arena arena;
  private final MemoryRegion region;
  private final int descriptor;
  private final int slots;
  private final long stride;
  private final boolean returnable;
  // Guarded by this.
  private @Nullable Thread populating;
  private boolean isFreed;
  private volatile boolean isEnough;

  private PoolMemory(
      @Nullable Arena arena,
      MemoryRegion region,
      int descriptor,
      int slots,
      long stride,
      boolean returnable) {
    this.arena = arena;
    this.region = region;
    this.descriptor = descriptor;
    this.slots = slots;
    this.stride = stride;
    this.returnable = returnable;
  }

  /**
   * The pool of one process: what the next stage offers, or an allocation.
   *
   * @throws StoreException when there is not enough memory
   */
  public static PoolMemory of(CacheConfig config, @Nullable Store next) {
    PoolMemory offered = offered(config, next);
    if (offered != null) {
      return offered;
    }
    requireRoom(config, config.slots() * config.stride());
    return allocate(
        (int) config.slots(),
        config.stride(),
        config.isLendable() ? PoolMemory::shared : PoolMemory::onHugePages);
  }

  /** What the next stage offers; null when that is nothing. */
  public static @Nullable PoolMemory offered(CacheConfig config, @Nullable Store next) {
    int slots = (int) config.slots();
    MemoryRegion offered =
        next instanceof MemoryProvider provider
            ? provider.offerMemory(slots * config.stride())
            : null;
    return offered == null ? null : offered(offered, slots, config.stride());
  }

  /**
   * A pool whose slots are given back and taken again as others need room.
   *
   * @param first how many slots are used at first
   * @throws StoreException when there is not enough memory for these
   */
  public static PoolMemory returnable(CacheConfig config, int first) {
    requireRoom(config, first * config.stride());
    PoolMemory memory =
        allocate(
            (int) config.slots(),
            config.stride(),
            config.isLendable() ? PoolMemory::sharedReturnable : PoolMemory::onReturnablePages);
    // At once: in the background it might bring back what has been given back meanwhile.
    var _ = HugeMemory.populate(memory.region.segment().asSlice(0, first * config.stride()));
    return memory;
  }

  /**
   * Refuses what there is no memory for.
   *
   * @throws StoreException when there are not so many bytes
   */
  public static void requireRoom(CacheConfig config, long bytes) {
    long available = new HostMemory(Path.of("/")).available();
    if (bytes > available) {
      throw new StoreException(
          ("Cache needs %s GiB of memory for its buffer (cache_buffer_capacity_gb %s), and %s GiB"
                  + " are available: lower cache_buffer_capacity_gb%s")
              .formatted(
                  CacheConfig.gib(bytes),
                  config.capacityGb(),
                  CacheConfig.gib(available),
                  config.shared()
                      ? ""
                      : "; each of the %s workers on this node has a buffer of its own"
                          .formatted(config.localRanks())));
    }
  }

  /** Slots in memory of the next stage, which owns it and keeps it until it is closed. */
  public static PoolMemory offered(MemoryRegion region, int slots, long stride) {
    if (!region.isHost()
        || region.byteSize() < slots * stride
        || region.address() % PAGE_BYTES != 0) {
      throw new StoreException(
          ("the stage below Cache offered %s; the pool needs page-aligned host memory of at least"
                  + " %s bytes")
              .formatted(region, slots * stride));
    }
    return new PoolMemory(null, region, NOT_SHARED, slots, stride, false);
  }

  /**
   * Allocates slots.
   *
   * @throws StoreException when the system does not give the memory
   */
  static PoolMemory allocate(int slots, long stride) {
    return allocate(slots, stride, PoolMemory::onHugePages);
  }

  private interface Kind {
    PoolMemory map(Arena arena, int slots, long stride);
  }

  private static PoolMemory onHugePages(Arena arena, int slots, long stride) {
    MemoryRegion region = MemoryRegion.host(HugeMemory.map(slots * stride, arena));
    return new PoolMemory(arena, region, NOT_SHARED, slots, stride, false);
  }

  private static PoolMemory onReturnablePages(Arena arena, int slots, long stride) {
    MemoryRegion region = MemoryRegion.host(HugeMemory.mapReturnable(slots * stride, arena));
    return new PoolMemory(arena, region, NOT_SHARED, slots, stride, true);
  }

  private static PoolMemory shared(Arena arena, int slots, long stride) {
    return shared(arena, slots, stride, false);
  }

  private static PoolMemory sharedReturnable(Arena arena, int slots, long stride) {
    return shared(arena, slots, stride, true);
  }

  private static PoolMemory shared(Arena arena, int slots, long stride, boolean returnable) {
    SharedMemory memory = SharedMemory.map(slots * stride, arena);
    MemoryRegion region = MemoryRegion.host(memory.bytes());
    return new PoolMemory(arena, region, memory.descriptor(), slots, stride, returnable);
  }

  private static PoolMemory allocate(int slots, long stride, Kind kind) {
    Arena arena = Arena.ofShared();
    try {
      return kind.map(arena, slots, stride);
    } catch (FileException e) {
      arena.close();
      throw new StoreException(
          "the system did not give the "
              + slots * stride
              + " bytes of the pool: lower cache_buffer_capacity_gb",
          e);
    }
  }

  /**
   * Has the system give the memory by and by on a thread of its own. Until then a slot waits for its own memory when it is first used.
   * Does nothing where slots are given back.
   */
  public synchronized void populate(String threadName) {
    if (arena != null && !returnable && populating == null) {
      populating = Thread.ofPlatform().daemon().name(threadName).start(this::populateAll);
    }
  }

  private void populateAll() {
    MemorySegment memory = region.segment();
    for (long at = 0; at < memory.byteSize() && !isEnough; at += BYTES_AT_ONCE) {
      long bytes = Math.min(BYTES_AT_ONCE, memory.byteSize() - at);
      if (!HugeMemory.populate(memory.asSlice(at, bytes))) {
        return;
      }
    }
  }

  /** Waits until nothing more is given ahead of its use. */
  void awaitPopulated() {
    Thread thread;
    synchronized (this) {
      thread = populating;
    }
    if (thread != null) {
      ThreadEnd.await(List.of(thread));
    }
  }

  /**
   * Has slots, which nobody uses, take no room until they are touched again. Does nothing once the memory
   * is freed: what is lent comes back after that, too, and the addresses may be those of other memory by then.
   */
  public synchronized void giveBack(int[] free) {
    if (isFreed) {
      return;
    }
    for (int slot : free) {
      MemorySegment part = region.segment().asSlice(offset(slot), stride);
      if (descriptor == NOT_SHARED) {
        HugeMemory.giveBack(part);
      } else {
        SharedMemory.giveBack(part);
      }
    }
  }

  /** How many slots there are. */
  public int slots() {
    return slots;
  }

  @Override
  public long stride() {
    return stride;
  }

  /** By what other processes map it, as it is called in this one; {@link #NOT_SHARED}. */
  public int descriptor() {
    return descriptor;
  }

  /** Bytes of all slots. */
  public long byteSize() {
    return slots * stride;
  }

  /** Bytes of them that lie on pages of 2 MiB, so far. */
  public long hugeBytes() {
    return HugeMemory.hugeBytes(region.segment());
  }

  @Override
  public MemoryRegion region() {
    return region;
  }

  /** Gathers the segments of a shard in host memory into a slot, or scatters the slot over them. */
  public void copy(Transfer transfer, int shard, int slot, boolean toSlot) {
    MemorySegment own = region.segment();
    long at = offset(slot);
    int segments = transfer.pieceCount();
    for (int segment = 0; segment < segments; segment++) {
      long size = transfer.pieceSize(segment);
      MemorySegment engine = transfer.region(shard, segment).segment();
      long offset = transfer.offset(shard, segment);
      if (toSlot) {
        MemorySegment.copy(engine, offset, own, at, size);
      } else {
        MemorySegment.copy(own, at, engine, offset, size);
      }
      at += size;
    }
  }

  /** Ends the thread of {@link #populate}: from now on a slot waits for its own memory when it is first used. */
  public void endPopulating() {
    isEnough = true;
    awaitPopulated();
  }

  /** Frees private memory. No slot may be touched afterwards. */
  public void free() {
    endPopulating();
    synchronized (this) {
      isFreed = true;
      if (arena != null) {
        arena.close();
      }
    }
  }

  @Override
  public String toString() {
    return slots + " slots of " + stride + " bytes";
  }
}
