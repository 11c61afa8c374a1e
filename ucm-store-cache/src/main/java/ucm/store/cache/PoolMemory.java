package ucm.store.cache;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;

/**
 * The bytes of the pool, cut into slots of one shard, each starting on a page (4096 bytes) so that
 * direct I/O works on it.
 *
 * <p>A private pool is a few regions of whole slots, each allocated, and thereby zeroed and touched for
 * the first time, by a thread of its own: one thread touches fresh memory at a fraction of the speed of
 * the machine. Memory offered by the backend is one region. Owned by the store; freed once.
 */
final class PoolMemory {

  static final long PAGE_BYTES = 4096;

  private static final int MAX_TOUCHING_THREADS = 16;
  private static final long MIN_REGION_BYTES = 64L << 20;

  private final @Nullable Arena arena;
  private final MemoryRegion[] regions;
  private final int slots;
  private final int slotsPerRegion;
  private final long stride;

  private PoolMemory(
      @Nullable Arena arena, MemoryRegion[] regions, int slots, int slotsPerRegion, long stride) {
    this.arena = arena;
    this.regions = regions;
    this.slots = slots;
    this.slotsPerRegion = slotsPerRegion;
    this.stride = stride;
  }

  /** Bytes from one slot to the next: the shard, rounded up to whole pages. */
  static long stride(long shardSize) {
    return Math.ceilDiv(shardSize, PAGE_BYTES) * PAGE_BYTES;
  }

  /** Slots in memory of the backend, which owns it and keeps it until it is closed. */
  static PoolMemory offered(MemoryRegion region, int slots, long stride) {
    if (!region.isHost()
        || region.byteSize() < slots * stride
        || region.address() % PAGE_BYTES != 0) {
      throw new StoreException(
          "the stage behind Cache offered "
              + region
              + "; the pool needs page-aligned host memory of at least "
              + slots * stride
              + " bytes");
    }
    return new PoolMemory(null, new MemoryRegion[] {region}, slots, slots, stride);
  }

  /**
   * Allocates slots and touches all of their pages.
   *
   * @throws StoreException when the system does not give the memory
   */
  static PoolMemory allocate(int slots, long stride) {
    int threads = Math.min(Runtime.getRuntime().availableProcessors(), MAX_TOUCHING_THREADS);
    int wanted = Math.clamp(slots * stride / MIN_REGION_BYTES, 1, threads);
    int slotsPerRegion = Math.ceilDiv(slots, wanted);
    int count = Math.ceilDiv(slots, slotsPerRegion);
    MemoryRegion[] regions = new MemoryRegion[count];
    @Nullable Throwable[] faults = new Throwable[count];
    Arena arena = Arena.ofShared();
    Thread[] workers =
        IntStream.range(0, count)
            .mapToObj(
                i ->
                    Thread.ofPlatform()
                        .name("ucm-cache-touch-" + i)
                        .start(
                            () -> {
                              int own = Math.min(slotsPerRegion, slots - i * slotsPerRegion);
                              try {
                                regions[i] =
                                    MemoryRegion.host(arena.allocate(own * stride, PAGE_BYTES));
                              } catch (RuntimeException | Error e) {
                                faults[i] = e;
                              }
                            }))
            .toArray(Thread[]::new);
    joinAll(workers);
    for (Throwable fault : faults) {
      if (fault != null) {
        arena.close();
        throw new StoreException(
            "the system did not give the "
                + slots * stride
                + " bytes of the pool: lower cache_buffer_capacity_gb",
            fault);
      }
    }
    return new PoolMemory(arena, regions, slots, slotsPerRegion, stride);
  }

  /** How many slots there are. */
  int slots() {
    return slots;
  }

  /** Bytes of all slots. */
  long byteSize() {
    return slots * stride;
  }

  /** All memory of the pool. */
  List<MemoryRegion> regions() {
    return List.of(regions);
  }

  /** The region a slot lies in. */
  MemoryRegion region(int slot) {
    return regions[slot / slotsPerRegion];
  }

  /** The memory a slot lies in. */
  MemorySegment segment(int slot) {
    return regions[slot / slotsPerRegion].segment();
  }

  /** Where a slot starts in its region, in bytes. */
  long offset(int slot) {
    return slot % slotsPerRegion * stride;
  }

  /** Gives private memory back; nobody may touch a slot any more. */
  void free() {
    if (arena != null) {
      arena.close();
    }
  }

  private static void joinAll(Thread[] threads) {
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          // The memory is half allocated: finish, then hand the interrupt on.
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public String toString() {
    return slots + " slots of " + stride + " bytes in " + Arrays.toString(regions);
  }
}
