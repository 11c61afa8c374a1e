package ucm.store.ds3fs;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A mounted 3FS, with the memory that its client on this machine shares with us: some for reading and some
 * for writing, of which each worker gets a part, and some that is lent to the upper stage. Thread-safe.
 */
final class Mount {

  final RingMetrics metrics;

  private final String point;
  private final List<String> directories;
  private final RingSettings rings;
  private final StagingMemory readMemory;
  private final StagingMemory writeMemory;
  private volatile @Nullable UsrbioMemory offered;

  // Guarded by this.
  private boolean isInUse;

  /**
   * Takes the memory.
   *
   * @param point the mount point
   * @param directories the directories on it
   * @param workers how many threads share the memory; more of them take memory of their own
   */
  Mount(
      String point,
      List<String> directories,
      RingSettings rings,
      int workers,
      long readBytes,
      long writeBytes,
      RingMetrics metrics) {
    this.point = point;
    this.directories = List.copyOf(directories);
    this.rings = rings;
    this.metrics = metrics;
    readMemory = new StagingMemory(point, rings, workers, readBytes);
    try {
      writeMemory = new StagingMemory(point, rings, workers, writeBytes);
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
    return directories.stream().anyMatch(directory -> path.startsWith(directory + "/"));
  }

  /**
   * A ring for one worker.
   *
   * @throws ucm.platform.libc.FileException when 3FS refuses it, or memory for it
   * @throws ucm.api.StoreException when there is no room for that memory
   */
  RingMover newMover(boolean isRead) {
    StagingMemory memory = isRead ? readMemory : writeMemory;
    StagingMemory.Part part = memory.take();
    try {
      return new RingMover(this, isRead, rings, part);
    } catch (RuntimeException e) {
      memory.giveBack(part);
      throw e;
    }
  }

  /** Lends memory to the upper stage, once. */
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

  /** Gives the memory back; the rings are closed, and the upper stage as well. */
  synchronized void close() {
    List<UsrbioMemory> all = new ArrayList<>(readMemory.all());
    all.addAll(writeMemory.all());
    UsrbioMemory lent = offered;
    if (lent != null) {
      all.add(lent);
    }
    all.forEach(isInUse ? UsrbioMemory::leave : UsrbioMemory::close);
  }

  @Override
  public String toString() {
    return point;
  }
}
