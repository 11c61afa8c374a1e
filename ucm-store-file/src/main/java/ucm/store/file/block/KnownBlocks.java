package ucm.store.file.block;

import ucm.platform.table.ConcurrentBlockSet;

/**
 * The blocks that this process knows to have a file.
 *
 * <p>What is here is a hint: another process may remove a file, which is found out when the block is
 * loaded, and then {@linkplain #remove dropped}. What is not here may still have a file. A full table
 * forgets an id for each that comes, which then is merely looked up on disk again. Thread-safe; asking
 * takes no lock, unless others change the table at that moment, and no allocation.
 */
public final class KnownBlocks {

  private final ConcurrentBlockSet blocks;
  private final boolean isOn;
  private volatile boolean scanned;

  /** An empty one that holds so many ids; with 0 it never knows any. */
  public KnownBlocks(int maxBlocks) {
    blocks = new ConcurrentBlockSet(maxBlocks);
    isOn = maxBlocks > 0;
  }

  /** Whether it may know any. */
  public boolean isOn() {
    return isOn;
  }

  /** Whether a block is known. */
  public boolean contains(long high, long low) {
    return blocks.contains(high, low);
  }

  /**
   * Whether a block has no file, provided that no other process writes to the directory. Always false until
   * the scan has ended, and once an id was forgotten.
   */
  public boolean excludes(long high, long low) {
    return isComplete() && !contains(high, low);
  }

  /** Adds a block that has a file. */
  public void add(long high, long low) {
    blocks.add(high, low);
  }

  /** Drops a block; returns whether it was known. */
  public boolean remove(long high, long low) {
    return blocks.remove(high, low);
  }

  /**
   * A number that is another one after any {@link #remove} of this block, and of some others. A caller that
   * reads it before it checks the file, and again after the block was {@linkplain #add added} because of
   * that check, sees whether the file may have gone in between.
   */
  public long stamp(long high, long low) {
    return blocks.removals(high, low);
  }

  /** Says that all files that were there at the start are known. */
  public void scanned() {
    scanned = true;
  }

  /** Whether every file is known that no other process wrote. */
  public boolean isComplete() {
    return scanned && forgotten() == 0;
  }

  /** How many blocks were forgotten for others. */
  public long forgotten() {
    return blocks.forgotten();
  }

  /** How many blocks are known. */
  public long size() {
    return blocks.size();
  }
}
