package ucm.store.ds3fs;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;

/**
 * A mounted 3FS, with the memory that its client on this machine shares with us: one iov for reading and
 * one for writing, of which each worker gets a part, and one that is lent to the stage in front.
 * Thread-safe.
 */
final class Mount {

  // A worker moves at most 512 KiB at a time, and what stands behind the last shard of a block.
  private static final long SLOT_BYTES = 576 << 10;
  private static final long PAGE = 4096;

  final RingMetrics metrics;

  private final String point;
  private final List<String> backends;
  private final RingSettings rings;
  private final int workers;
  private final UsrbioMemory readMemory;
  private final UsrbioMemory writeMemory;
  private volatile @Nullable UsrbioMemory offered;

  // Guarded by this.
  private int readers;
  private int writers;
  private boolean isInUse;

  /**
   * Takes the memory.
   *
   * @param point the mount point
   * @param backends the directories on it
   * @param workers how many threads share the memory at the most
   */
  Mount(
      String point,
      List<String> backends,
      RingSettings rings,
      int workers,
      long readBytes,
      long writeBytes,
      RingMetrics metrics) {
    this.point = point;
    this.backends = List.copyOf(backends);
    this.rings = rings;
    this.workers = workers;
    this.metrics = metrics;
    readMemory = new UsrbioMemory(point, readBytes, rings.numaId());
    try {
      writeMemory = new UsrbioMemory(point, writeBytes, rings.numaId());
    } catch (RuntimeException e) {
      readMemory.close();
      throw e;
    }
  }

  /** The mount point. */
  String point() {
    return point;
  }

  /** Whether a file is in one of the directories on this mount. */
  boolean holds(String path) {
    for (String backend : backends) {
      if (path.startsWith(backend)
          && path.length() > backend.length()
          && path.charAt(backend.length()) == '/') {
        return true;
      }
    }
    return false;
  }

  /** A ring for one worker. */
  RingMover newMover(boolean isRead) {
    return new RingMover(this, isRead, rings);
  }

  /** A worker's part of the memory for reading or for writing. */
  synchronized StagingSlots takeSlots(boolean isRead) {
    UsrbioMemory memory = isRead ? readMemory : writeMemory;
    int taken = isRead ? readers++ : writers++;
    if (taken >= workers) {
      throw new StoreException(
          "more than stream_number " + workers + " threads ask for a ring on " + point);
    }
    long part = memory.segment.byteSize() / workers / PAGE * PAGE;
    long slotBytes = Math.min(part, SLOT_BYTES);
    int count = Math.clamp(part / slotBytes, 1, rings.vectors());
    return new StagingSlots(memory, taken * part, count, slotBytes);
  }

  /** Lends memory to the stage in front, once. */
  MemorySegment offer(long byteSize) {
    UsrbioMemory memory = new UsrbioMemory(point, byteSize, rings.numaId());
    offered = memory;
    return memory.segment;
  }

  /** Whether a stretch of memory is of what was lent, and can be named in requests. */
  boolean isOffered(long address, long length) {
    UsrbioMemory memory = offered;
    return memory != null && memory.contains(address, length);
  }

  /** The {@code struct hf3fs_iov} of what was lent. */
  MemorySegment offeredHandle() {
    return Objects.requireNonNull(offered).handle;
  }

  /** A ring was closed on which requests are under way, which may touch the memory any time. */
  synchronized void leaveMemory() {
    isInUse = true;
  }

  /** Gives the memory back; the rings are closed, and the stage in front as well. */
  synchronized void close() {
    List<UsrbioMemory> all = new ArrayList<>(List.of(readMemory, writeMemory));
    UsrbioMemory lent = offered;
    if (lent != null) {
      all.add(lent);
    }
    for (UsrbioMemory memory : all) {
      if (isInUse) {
        memory.leave();
      } else {
        memory.close();
      }
    }
  }

  @Override
  public String toString() {
    return point;
  }
}
