package ucm.server.staging;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;
import ucm.device.Device;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.platform.libc.FileException;
import ucm.platform.memory.NumaMemory;
import ucm.platform.memory.SharedFile;

/**
 * Shared memory of slots that hold a block of one rank each: a file of tmpfs that only this user can
 * open, mapped here and by the worker. All of its memory is there from the start, so that no access
 * fails later. The file is removed when the segment is closed; a mapping of the worker stays valid.
 *
 * <p>Behind the slots there is a byte for each, which the worker sets while it may be writing there: a process can be
 * stopped at any instruction, and writes on when it goes on. Behind those there is a number for each, where this rank
 * reads the block that was promised in the slot: 0 in the slot, else in a slot that a store lends.
 */
public final class StagingSegment implements AutoCloseable {

  /** Slots begin at multiples of this. */
  public static final int ALIGNMENT = 4096;

  private final SharedFile file;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment memory;
  private final MemorySegment marks;
  private final MemorySegment told;
  // Guarded by this: as the worker is told.
  private final int[] places;
  private final int slots;
  private final long stride;
  private final MemoryRegion region;
  private @Nullable Device pinning;

  private StagingSegment(SharedFile file, KvLayout layout, int slots) {
    this.file = file;
    this.slots = slots;
    stride = strideOf(layout);
    file.allocate(byteSize());
    MemorySegment all = file.map(byteSize(), arena);
    memory = all.asSlice(0, slots * stride);
    marks = all.asSlice(slots * stride, slots);
    told = all.asSlice(placesAt());
    places = new int[slots];
    region = MemoryRegion.host(memory);
  }

  /**
   * Makes a segment.
   *
   * @param path where there is no file yet
   * @throws StoreException when there is not enough shared memory
   */
  public static StagingSegment create(Path path, KvLayout layout, int slots) {
    SharedFile file = SharedFile.create(path);
    if (file == null) {
      throw new StoreException(path + " exists already; remove it");
    }
    try {
      return new StagingSegment(file, layout, slots);
    } catch (FileException e) {
      file.remove();
      file.close();
      throw new StoreException(
          ("no staging segment of %s slots of %s bytes: %s; give the node or container more"
                  + " shared memory, or lower --staging")
              .formatted(slots, strideOf(layout), e.getMessage()),
          e);
    }
  }

  /** Bytes from one slot to the next. */
  public static long strideOf(KvLayout layout) {
    long bytes = layout.blockLayout().blockSize();
    return aligned(bytes);
  }

  public Path path() {
    return file.path();
  }

  /** The file's number in its file system. */
  public long inode() {
    return file.inode();
  }

  /** Bytes of all slots, and of what is behind them. */
  public long byteSize() {
    return placesAt() + aligned(Integer.BYTES * (long) slots);
  }

  /** Where the worker is told in which places it reads. */
  public long placesAt() {
    return slots * stride + aligned(slots);
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  /** Bytes from one slot to the next. */
  public long stride() {
    return stride;
  }

  public int slots() {
    return slots;
  }

  /** Where in the region a slot starts, in bytes. */
  public long offset(int slot) {
    return Objects.checkIndex(slot, slots) * stride;
  }

  /** Whether the worker may be writing to a slot. */
  public synchronized boolean isMarked(int slot) {
    return isOpen() && marks.get(ValueLayout.JAVA_BYTE, Objects.checkIndex(slot, slots)) != 0;
  }

  /**
   * Has the worker read a slot's block elsewhere, until the slot is free.
   *
   * @param place the number of a slot that a store lends
   */
  public synchronized void place(int slot, int place) {
    places[slot] = place;
    if (isOpen()) {
      told.setAtIndex(ValueLayout.JAVA_INT, slot, place);
    }
  }

  /** Has the worker read slots themselves again; returns where it was to read their blocks. */
  public synchronized int[] unplace(int[] slots) {
    int[] placed = IntStream.of(slots).filter(slot -> places[slot] != 0).toArray();
    int[] found = Arrays.stream(placed).map(slot -> places[slot]).toArray();
    IntStream.of(placed).forEach(slot -> place(slot, 0));
    return found;
  }

  /** The worker has hung up: it marks nothing any more. */
  public synchronized void clearMarks() {
    if (isOpen()) {
      var _ = marks.fill((byte) 0);
    }
  }

  private boolean isOpen() {
    return arena.scope().isAlive();
  }

  public MemoryRegion region() {
    return region;
  }

  /**
   * Has a device read and write the slots by itself, and all other devices of its driver; the slots move to
   * the memory nearest to the first. Idempotent.
   *
   * @throws ucm.device.DeviceException when the driver refuses
   */
  public synchronized void pin(Device device) {
    if (pinning == null) {
      // Pages of the file that this process has not touched would not move.
      for (long at = 0; at < memory.byteSize(); at += ALIGNMENT) {
        byte _ = memory.get(ValueLayout.JAVA_BYTE, at);
      }
      NumaMemory.prefer(memory, device.info().numaNode());
      device.pin(region, stride);
      pinning = device;
    }
  }

  /** Removes the file and unmaps the memory, which no task may use any more. */
  @Override
  public synchronized void close() {
    if (pinning != null) {
      pinning.free(region);
    }
    file.remove();
    file.close();
    arena.close();
  }
}
