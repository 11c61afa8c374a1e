package ucm.store.file.volume;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Checks that the file system of one directory keeps some space free, whatever fills it. The file system
 * is asked at most every tenth of a second while there is plenty, and for each block when there is
 * not. Thread-safe.
 */
public final class FreeSpace {

  /** In place of what must stay free: no room is refused, and the file system is not asked. */
  public static final long OFF = -1;

  private static final long MAX_AGE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long KNOWN_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final LongSupplier freeBytes;
  private final LongSupplier clock;

  // Guarded by this.
  private long floorBytes = OFF;
  private boolean isPressed;
  private boolean asked;
  private long askedNanos;
  private long free;
  private long reserved;

  /**
   * Asks nothing yet, and keeps nothing free.
   *
   * @param freeBytes what the file system has left for this user
   */
  public FreeSpace(LongSupplier freeBytes, LongSupplier clock) {
    this.freeBytes = freeBytes;
    this.clock = clock;
  }

  /** Keeps so much free from now on, or {@link #OFF}. */
  public synchronized void keep(long bytes) {
    floorBytes = bytes;
  }

  /** Reserves room for a file; false when less than the floor would be left. */
  public synchronized boolean reserve(long bytes) {
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
      isPressed = true;
      return false;
    }
    free -= bytes;
    reserved += bytes;
    return true;
  }

  /**
   * Whether there is room for so much by what the file system told last. Does not ask it, as it may hang; what it
   * told a minute ago, and what it is not asked for, is not known.
   */
  public synchronized boolean has(long bytes) {
    return floorBytes != OFF
        && asked
        && clock.getAsLong() - askedNanos < KNOWN_NANOS
        && free - bytes >= floorBytes;
  }

  /** Whether room was refused since this was last asked. */
  public synchronized boolean takePressed() {
    boolean taken = isPressed;
    isPressed = false;
    return taken;
  }

  /** The bytes that were free, less those reserved, when that was last asked. */
  public synchronized long known() {
    return free;
  }

  /** The file is written. */
  public synchronized void committed(long bytes) {
    reserved -= bytes;
  }

  /** The file was not written, or was removed. */
  public synchronized void release(long bytes) {
    reserved -= bytes;
    free += bytes;
  }
}
