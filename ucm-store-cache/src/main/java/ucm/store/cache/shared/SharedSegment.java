package ucm.store.cache.shared;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.memory.SharedFile;
import ucm.store.cache.config.CacheConfig;

/**
 * A file in /dev/shm that the workers of an instance on this node share as their buffer; from joining
 * to leaving. Its layout is in docs/shared-buffer.md.
 *
 * <p>Coming and going is done by one process at a time, the one that has locked the gate (a byte of the
 * file). Under it, the first comer makes the segment, each comer enters the table of owners, and the last one to leave
 * removes the file: that is, who finds no other owner's byte locked. A file that no living owner has is
 * the remains of a crash; each process that meets it removes it, and looks for such when it makes a segment
 * remains first.
 */
final class SharedSegment implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SharedSegment.class);
  private static final long GATE_PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(5);
  private static final long LEAVE_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long GATE_RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private final SharedFile file;
  private final SegmentLayout layout;
  private final Arena arena;
  private final SegmentWords words;
  private final SegmentOwners owners;

  private SharedSegment(
      SharedFile file,
      SegmentLayout layout,
      Arena arena,
      SegmentWords words,
      SegmentOwners owners) {
    this.file = file;
    this.layout = layout;
    this.arena = arena;
    this.words = words;
    this.owners = owners;
  }

  /**
   * Attaches to the segment of an instance, or makes it.
   *
   * @param available how much memory the machine has left, for a segment to be made
   * @throws StoreException when there is no room for it, or one of another kind is in use
   */
  static SharedSegment join(
      SegmentFolder folder, String uniqueId, SegmentLayout layout, long available) {
    Path path = folder.segment(uniqueId);
    while (true) {
      SharedFile file = openOrCreate(path);
      if (file == null) {
        continue;
      }
      try {
        SharedSegment joined = tryJoin(folder, file, layout, available);
        if (joined != null) {
          return joined;
        }
      } catch (RuntimeException | Error e) {
        closeAfter(file, e);
        throw e;
      }
      file.close();
    }
  }

  SegmentLayout layout() {
    return layout;
  }

  SegmentWords words() {
    return words;
  }

  SegmentOwners owners() {
    return owners;
  }

  /** The slots, alive until {@link #close}. */
  MemoryRegion slots() {
    return MemoryRegion.host(words.memory().asSlice(layout.slotsAt()));
  }

  /** Leaves; the last one removes the file. The segment must not be touched afterwards. */
  @Override
  public void close() {
    try {
      owners.leave();
      if (awaitGate(file, LEAVE_PATIENCE_NANOS)) {
        if (file.isAtPath() && !isUsed(file)) {
          file.remove();
        }
      } else {
        LOG.warn("Cache: {} is left for the next process to remove, if it is unused", file.path());
      }
    } finally {
      file.close();
      arena.close();
    }
  }

  @Override
  public String toString() {
    return file.path() + ", " + layout.byteSize() + " bytes, owner " + owners.own();
  }

  /** Null when the file is not, or is no more, what its path names. */
  private static @Nullable SharedSegment tryJoin(
      SegmentFolder folder, SharedFile file, SegmentLayout layout, long available) {
    if (file.user() != folder.user() || !file.isPrivate()) {
      throw new StoreException(
          "Cache does not use "
              + file.path()
              + " as a shared buffer: it belongs to user "
              + file.user()
              + ", or others may read or write it; remove it, or choose another unique_id");
    }
    if (!awaitGate(file, GATE_PATIENCE_NANOS)) {
      throw new StoreException(
          "Cache waited for five minutes, or until it was interrupted, for another worker to make"
              + " or leave "
              + file.path()
              + ": look what that one does, or choose another unique_id");
    }
    if (!file.isAtPath()) {
      return null;
    }
    boolean fresh = file.byteSize() == 0;
    if (!fresh && !isUsed(file)) {
      LOG.info("Cache: removes {}, which a worker that died has left", file.path());
      file.remove();
      return null;
    }
    if (!fresh) {
      Optional<String> difference = SegmentHeader.difference(file, layout, folder.bootId());
      if (difference.isPresent()) {
        throw new StoreException(
            "Cache cannot share the buffer "
                + file.path()
                + ", which is in use: "
                + difference.get()
                + "; give all workers of the instance the same layout and"
                + " cache_buffer_capacity_gb, or this one another unique_id");
      }
    }
    if (fresh) {
      removeRemains(folder, file.path());
      allocate(folder, file, layout, available);
    }
    return attach(folder, file, layout, fresh);
  }

  private static SharedSegment attach(
      SegmentFolder folder, SharedFile file, SegmentLayout layout, boolean fresh) {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment memory = file.map(layout.byteSize(), arena);
      SegmentWords words = new SegmentWords(memory);
      if (fresh) {
        for (int stripe = 0; stripe < layout.stripes(); stripe++) {
          SlabManager.format(words, layout, stripe);
        }
        SegmentHeader.write(words, layout, folder.bootId());
      }
      SegmentOwners owners = SegmentOwners.enter(file, words, layout);
      file.unlock(SegmentLayout.GATE_LOCK);
      return new SharedSegment(file, layout, arena, words, owners);
    } catch (RuntimeException | Error e) {
      arena.close();
      if (fresh) {
        file.remove();
      }
      throw e;
    }
  }

  private static void allocate(
      SegmentFolder folder, SharedFile file, SegmentLayout layout, long available) {
    long needed = layout.byteSize();
    long free = Math.min(folder.free(), available);
    if (needed > free) {
      file.remove();
      throw noRoom(folder, needed, free, null);
    }
    takeRoom(folder, file, needed);
  }

  /** Takes the memory that was free a moment ago; others may have been faster. */
  static void takeRoom(SegmentFolder folder, SharedFile file, long needed) {
    try {
      file.allocate(needed);
    } catch (FileException e) {
      file.remove();
      if (e.errno() == Errno.ENOSPC || e.errno() == Errno.ENOMEM) {
        throw noRoom(folder, needed, folder.free(), e);
      }
      throw e;
    }
  }

  private static StoreException noRoom(
      SegmentFolder folder, long needed, long free, @Nullable Throwable cause) {
    return new StoreException(
        "Cache needs "
            + CacheConfig.gib(needed)
            + " GiB in "
            + folder.path()
            + " for the buffer that the workers of this node share, and "
            + CacheConfig.gib(free)
            + " GiB are free there and in memory: lower cache_buffer_capacity_gb, or enlarge "
            + folder.path()
            + " (mount -o remount,size=...; in a container: its shm size)",
        cause);
  }

  /** Removes what died instances of this user have left, so that a crash does not cost its memory for ever. */
  private static void removeRemains(SegmentFolder folder, Path except) {
    for (Path path : folder.segments()) {
      if (path.equals(except)) {
        continue;
      }
      try (SharedFile file = SharedFile.open(path)) {
        if (file != null
            && file.user() == folder.user()
            && file.tryLock(SegmentLayout.GATE_LOCK)
            && file.isAtPath()
            && !isUsed(file)) {
          LOG.info("Cache: removes {}, which workers that died have left", path);
          file.remove();
        }
      } catch (FileException e) {
        // Another process has it, or it is gone by now.
        LOG.debug("Cache leaves {} alone: {}", path, e.getMessage());
      }
    }
  }

  private static boolean isUsed(SharedFile file) {
    return file.isLockedElsewhere(SegmentLayout.OWNER_LOCK, SegmentLayout.OWNERS);
  }

  private static @Nullable SharedFile openOrCreate(Path path) {
    SharedFile file = SharedFile.open(path);
    return file == null ? SharedFile.create(path) : file;
  }

  private static boolean awaitGate(SharedFile file, long nanos) {
    long start = System.nanoTime();
    while (!file.tryLock(SegmentLayout.GATE_LOCK)) {
      if (System.nanoTime() - start > nanos || Thread.currentThread().isInterrupted()) {
        return false;
      }
      LockSupport.parkNanos(GATE_RETRY_NANOS);
    }
    return true;
  }

  private static void closeAfter(SharedFile file, Throwable cause) {
    try {
      file.close();
    } catch (FileException e) {
      cause.addSuppressed(e);
    }
  }
}
