package ucm.store.ds3fs;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import ucm.api.StoreException;

/**
 * The staging memory of a mount, for one way: an iov of which each worker gets a part. A thread beyond
 * these stands in for one that 3FS holds, and gets an iov of its own as large as a part, as only a hang has
 * use for it. Thread-safe.
 */
final class StagingMemory {

  /** A worker's part of an iov, cut into slots of one size. For one thread. */
  static final class Part {

    final UsrbioMemory iov;
    final long slotBytes;
    private final long start;
    private final ArrayDeque<Integer> free = new ArrayDeque<>();

    private Part(UsrbioMemory iov, long start, int count, long slotBytes) {
      this.iov = iov;
      this.start = start;
      this.slotBytes = slotBytes;
      IntStream.range(0, count).forEach(free::push);
    }

    /** Takes a slot; -1 when all are taken. */
    int take() {
      return free.isEmpty() ? -1 : free.pop();
    }

    void giveBack(int slot) {
      free.push(slot);
    }

    /** Where a slot is in the iov, in bytes. */
    long offset(int slot) {
      return start + slot * slotBytes;
    }
  }

  // A worker moves at most 512 KiB at a time, and what follows the last shard of a block.
  private static final long SLOT_BYTES = 576 << 10;
  private static final long PAGE = 4096;

  private final String point;
  private final RingSettings rings;
  private final int workers;
  private final long partBytes;
  private final UsrbioMemory shared;

  // Guarded by this: parts that were given back unused, parts that were given out, and all memory.
  private final ArrayDeque<Part> unused = new ArrayDeque<>();
  private int taken;
  private final List<UsrbioMemory> all = new ArrayList<>();

  /**
   * Takes the memory that the workers share.
   *
   * @param point the mount point
   */
  StagingMemory(String point, Ds3fsConfig config, long byteSize) {
    this.point = point;
    this.rings = config.rings();
    this.workers = config.streams();
    partBytes = byteSize / workers / PAGE * PAGE;
    shared = new UsrbioMemory(point, byteSize, rings.numaId());
    all.add(shared);
  }

  /**
   * A part for one thread.
   *
   * @throws StoreException when it is one beyond those of the workers, and there is no room for it
   */
  Part take() {
    synchronized (this) {
      Part known = unused.poll();
      if (known != null) {
        return known;
      }
      if (taken < workers) {
        return part(shared, taken++ * partBytes);
      }
    }
    // Not under the lock, as 3FS may take its time.
    UsrbioMemory own = ofItsOwn();
    synchronized (this) {
      all.add(own);
    }
    return part(own, 0);
  }

  private UsrbioMemory ofItsOwn() {
    long free = SharedMemorySpace.now().freeBytes();
    if (free < partBytes) {
      throw new StoreException(
          ("a thread that stands in for one that 3FS holds needs %s bytes of %s for %s, which has"
                  + " %s free: make it larger")
              .formatted(partBytes, SharedMemorySpace.FOLDER, point, free));
    }
    return new UsrbioMemory(point, partBytes, rings.numaId());
  }

  private Part part(UsrbioMemory memory, long start) {
    long slotBytes = Math.min(partBytes, SLOT_BYTES);
    int count = Math.clamp(partBytes / slotBytes, 1, rings.vectors());
    return new Part(memory, start, count, slotBytes);
  }

  /** Takes back a part of which no slot is taken. */
  synchronized void giveBack(Part part) {
    unused.add(part);
  }

  synchronized List<UsrbioMemory> all() {
    return List.copyOf(all);
  }

  /** Gives the memory back; nothing is under way on it. */
  void close() {
    all().forEach(UsrbioMemory::close);
  }
}
