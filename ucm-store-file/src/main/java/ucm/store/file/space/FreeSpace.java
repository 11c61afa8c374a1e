package ucm.store.file.space;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Checks that the file system of one directory keeps some space free, whatever fills it. The file system
 * is asked at most every tenth of a second while there is plenty, and for each block when there is
 * not. Thread-safe.
 */
final class FreeSpace {

  /** In place of what must stay free: no room is refused, and the file system is not asked. */
  static final long OFF = -1;

  private static final long MAX_AGE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final LongSupplier freeBytes;
  private final LongSupplier clock;

  // Guarded by this.
  private long floorBytes;
  private boolean asked;
  private long askedNanos;
  private long free;
  private long reserved;

  /**
   * Asks nothing yet.
   *
   * @param freeBytes what the file system has left for this user
   * @param floorBytes what must stay free, or {@link #OFF}
   */
  FreeSpace(LongSupplier freeBytes, LongSupplier clock, long floorBytes) {
    this.freeBytes = freeBytes;
    this.clock = clock;
    this.floorBytes = floorBytes;
  }

  /** Keeps so much free from now on, or {@link #OFF}. */
  synchronized void keep(long bytes) {
    floorBytes = bytes;
  }

  /** Reserves room for a file; false when less than the floor would be left. */
  synchronized boolean reserve(long bytes) {
    if (floorBytes == OFF) {
      return true;
    }
    long now = clock.getAsLong();
    if (!asked || now - askedNanos >= MAX_AGE_NANOS || free - bytes < floorBytes) {
      // What is reserved may be written in part already; counting it twice errs on the safe side.
      free = freeBytes.getAsLong() - reserved;
      askedNanos = now;
      asked = true;
    }
    if (free - bytes < floorBytes) {
      return false;
    }
    free -= bytes;
    reserved += bytes;
    return true;
  }

  /** The bytes that were free, less those reserved, when that was last asked. */
  synchronized long known() {
    return free;
  }

  /** The file is written. */
  synchronized void committed(long bytes) {
    reserved -= bytes;
  }

  /** The file was not written, or was removed. */
  synchronized void release(long bytes) {
    reserved -= bytes;
    free += bytes;
  }
}
