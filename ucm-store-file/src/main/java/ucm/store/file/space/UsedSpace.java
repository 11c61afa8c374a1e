package ucm.store.file.space;

import java.util.Arrays;

/**
 * Counts the bytes that a store takes on its directories, by folder. What this store writes and removes
 * is counted at once; what others do is found by a scan, folder by folder. Until the first scan has
 * ended, the total that was remembered by the last process counts, if it is more. Thread-safe; its
 * lock is held for a few instructions.
 */
public final class UsedSpace {

  // Guarded by this.
  private final long[] byFolder;
  private final int[] changes;
  private final int[] committing;
  private long total;
  private long reserved;
  private long remembered;
  private long grown;
  private long addedSinceScan;
  private boolean scanned;

  UsedSpace(int folders) {
    byFolder = new long[folders];
    changes = new int[folders];
    committing = new int[folders];
  }

  /** Takes up what was used when it was last counted, by any process. */
  public synchronized void remember(long bytes) {
    remembered = bytes;
  }

  /**
   * A scan has ended.
   *
   * @param all whether it saw all folders, so that what was remembered does not count any more
   */
  public synchronized void scanned(boolean all) {
    scanned |= all;
    addedSinceScan = 0;
  }

  /** Bytes used, with those that are being written. */
  public synchronized long used() {
    return reserved + (scanned ? total : Math.max(total, remembered + grown));
  }

  /**
   * Reserves room for a file.
   *
   * @param limit bytes that may be used in all
   * @return whether there is room
   */
  synchronized boolean reserve(long bytes, long limit) {
    if (used() + bytes > limit) {
      return false;
    }
    reserved += bytes;
    return true;
  }

  /** Gives back what was reserved. */
  synchronized void release(long bytes) {
    reserved -= bytes;
  }

  /** What was reserved is about to become a file in a folder, so that a scan may see it or not. */
  synchronized void beginCommit(int folder) {
    committing[folder]++;
  }

  /**
   * Ends what {@link #beginCommit} began.
   *
   * @param isThere whether it is a file now; else it stays reserved
   */
  synchronized void endCommit(int folder, long bytes, boolean isThere) {
    committing[folder]--;
    if (isThere) {
      reserved -= bytes;
      addedSinceScan += bytes;
      change(folder, bytes);
    }
  }

  /** Bytes of the files that this store added since the last scan. */
  synchronized long addedSinceScan() {
    return addedSinceScan;
  }

  /** A file of a folder was removed. */
  public synchronized void removed(int folder, long bytes) {
    change(folder, -bytes);
  }

  private void change(int folder, long bytes) {
    changes[folder]++;
    byFolder[folder] += bytes;
    total += bytes;
    grown += bytes;
  }

  /** How often this store changed a folder; to be asked before it is scanned. */
  public synchronized int changes(int folder) {
    return changes[folder];
  }

  /** What some folders hold, up to the last one, which is left out. */
  synchronized long inFolders(int from, int to) {
    return Arrays.stream(byFolder, from, to).sum();
  }

  /**
   * A folder was scanned.
   *
   * @param bytes what it holds
   * @param changesBefore from {@link #changes}
   * @return false when this store changed it meanwhile, so that it is unknown what was seen
   */
  public synchronized boolean scanned(int folder, long bytes, int changesBefore) {
    if (committing[folder] > 0 || changes[folder] != changesBefore) {
      return false;
    }
    total += bytes - byFolder[folder];
    byFolder[folder] = bytes;
    return true;
  }
}
