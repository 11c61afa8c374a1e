package ucm.store.file.block;

import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import ucm.platform.table.ConcurrentBlockSet;

/**
 * The blocks that this process knows to have a file.
 *
 * <p>What is here is a hint: another process may remove a file, which is found out when the block is
 * loaded, and then {@linkplain #remove dropped}. What is not here may still have a file. A full index
 * forgets an id for each that comes, which then is merely looked up on disk again. Thread-safe; asking
 * takes no lock, unless others change the index at that moment, and no allocation.
 */
public final class BlockIndex {

  private final @Nullable ConcurrentBlockSet blocks;
  private final AtomicLong forgotten = new AtomicLong();
  private volatile boolean scanned;

  /** An empty one that holds so many ids; with 0 it never knows any. */
  public BlockIndex(int maxBlocks) {
    blocks = maxBlocks == 0 ? null : new ConcurrentBlockSet(maxBlocks);
  }

  /** Whether there is an index at all. */
  public boolean isOn() {
    return blocks != null;
  }

  /** Whether a block is known. */
  public boolean contains(long high, long low) {
    return blocks != null && blocks.contains(high, low);
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
    if (blocks != null && blocks.add(high, low)) {
      forgotten.incrementAndGet();
    }
  }

  /** Drops a block; returns whether it was known. */
  public boolean remove(long high, long low) {
    return blocks != null && blocks.remove(high, low);
  }

  /**
   * A number that is another one after any {@link #remove} of this block, and of some others. A caller that
   * reads it before it checks the file, and again after the block was {@linkplain #add added} because of
   * that check, sees whether the file may have gone in between.
   */
  public long removals(long high, long low) {
    return blocks == null ? 0 : blocks.removals(high, low);
  }

  /** Says that all files that were there at the start are known. */
  public void scanned() {
    scanned = true;
  }

  /** Whether every file is known that no other process wrote. */
  public boolean isComplete() {
    return scanned && !hasForgotten();
  }

  /** Whether it had to forget a block. */
  public boolean hasForgotten() {
    return forgotten.get() > 0;
  }

  /** How many blocks were forgotten for others. */
  public long forgottenCount() {
    return forgotten.get();
  }

  /** How many blocks are known. */
  public long size() {
    return blocks == null ? 0 : blocks.size();
  }
}
