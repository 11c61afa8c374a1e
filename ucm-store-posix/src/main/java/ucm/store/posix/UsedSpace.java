package ucm.store.posix;

/**
 * Counts the bytes that a store takes on its backends, by folder. What this store writes and removes
 * is counted at once; what others do is found by a scan, folder by folder. Until the first scan has
 * ended, the total that was remembered by the last process counts, if it is more. Thread-safe; its
 * lock is held for a few instructions.
 */
final class UsedSpace {

  // Guarded by this.
  private final long[] byFolder;
  private final int[] changes;
  private long total;
  private long reserved;
  private long remembered;
  private long grown;
  private boolean scanned;

  UsedSpace(int folders) {
    byFolder = new long[folders];
    changes = new int[folders];
  }

  /** Takes up what was used when it was last counted, by whomever. */
  synchronized void remember(long bytes) {
    remembered = bytes;
  }

  /** All folders have been scanned once: what was remembered does not count any more. */
  synchronized void scanned() {
    scanned = true;
  }

  /** Bytes used, with those that are being written. */
  synchronized long used() {
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

  /** What was reserved is now a file in a folder. */
  synchronized void committed(int folder, long bytes) {
    reserved -= bytes;
    change(folder, bytes);
  }

  /** A file of a folder was removed. */
  synchronized void removed(int folder, long bytes) {
    change(folder, -bytes);
  }

  private void change(int folder, long bytes) {
    changes[folder]++;
    byFolder[folder] += bytes;
    total += bytes;
    grown += bytes;
  }

  /** How often this store changed a folder; to be asked before it is scanned. */
  synchronized int changes(int folder) {
    return changes[folder];
  }

  /** What a folder holds. */
  synchronized long inFolder(int folder) {
    return byFolder[folder];
  }

  /**
   * A folder was scanned.
   *
   * @param bytes what it holds
   * @param changesBefore from {@link #changes}
   * @return false when this store changed it meanwhile, so that nobody knows what was seen
   */
  synchronized boolean scanned(int folder, long bytes, int changesBefore) {
    if (changes[folder] != changesBefore) {
      return false;
    }
    total += bytes - byFolder[folder];
    byFolder[folder] = bytes;
    return true;
  }
}
