package ucm.store.file.index;

import java.util.concurrent.atomic.LongAdder;

/**
 * The blocks that this process knows to have a file: their ids, off the heap, in tables that grow with
 * them, 24 to 48 bytes for each.
 *
 * <p>What is here is a hint: another process may remove a file, which is found out when the block is
 * loaded, and then {@linkplain #remove dropped}. What is not here may still have a file. A full index
 * forgets an id for each that comes, which then is merely looked up on disk again. Thread-safe; asking
 * takes no lock and no allocation.
 */
public final class BlockIndex {

  private static final int STRIPES = 64;
  // Below this a single stripe, so that a small bound is exact.
  private static final int SMALL = 1 << 12;

  private final IndexStripe[] stripes;
  private final LongAdder forgotten = new LongAdder();
  private volatile boolean scanned;
  private volatile boolean forgot;

  /**
   * An empty one.
   *
   * @param maxBlocks how many ids it holds; 0 for an index that never knows any
   */
  public BlockIndex(int maxBlocks) {
    int count = maxBlocks == 0 ? 0 : maxBlocks < SMALL ? 1 : STRIPES;
    stripes = new IndexStripe[count];
    if (count == 0) {
      return;
    }
    int most = Math.ceilDiv(maxBlocks, count);
    for (int i = 0; i < count; i++) {
      stripes[i] = new IndexStripe(most);
    }
  }

  /** Whether there is an index at all. */
  public boolean isOn() {
    return stripes.length > 0;
  }

  /** Whether a block is known. */
  public boolean contains(long high, long low) {
    // High word 0 marks free slots: such an id, one of 2^64, is always looked up on disk.
    if (high == 0 || stripes.length == 0) {
      return false;
    }
    long hash = IndexStripe.hash(high, low);
    return stripe(hash).mayHold(hash, high, low);
  }

  /**
   * Whether a block has no file, provided that no other process writes to the directory. Always false until
   * the scan has ended, and once an id was forgotten.
   */
  public boolean excludes(long high, long low) {
    if (high == 0 || !isComplete()) {
      return false;
    }
    long hash = IndexStripe.hash(high, low);
    return !stripe(hash).holds(hash, high, low);
  }

  /** Adds a block that has a file. */
  public void add(long high, long low) {
    if (high == 0 || stripes.length == 0) {
      return;
    }
    long hash = IndexStripe.hash(high, low);
    IndexStripe stripe = stripe(hash);
    if (!stripe.mayHold(hash, high, low) && stripe.add(hash, high, low)) {
      forgot = true;
      forgotten.increment();
    }
  }

  /** Drops a block; returns whether it was known. */
  public boolean remove(long high, long low) {
    if (high == 0 || stripes.length == 0) {
      return false;
    }
    long hash = IndexStripe.hash(high, low);
    return stripe(hash).remove(hash, high, low);
  }

  /**
   * A number that is another one after any {@link #remove} of this block, and of some others. A caller that
   * reads it before it checks the file, and again after the block was {@linkplain #add added} because of
   * that check, sees whether the file may have gone in between.
   */
  public long removals(long high, long low) {
    return stripes.length == 0 ? 0 : stripe(IndexStripe.hash(high, low)).removals();
  }

  /** Says that all files that were there at the start are known. */
  public void scanned() {
    scanned = true;
  }

  /** Whether every file is known that no other process wrote. */
  public boolean isComplete() {
    return scanned && !forgot;
  }

  /** Whether it had to forget a block. */
  public boolean hasForgotten() {
    return forgot;
  }

  /** How many blocks were forgotten for others. */
  public long forgottenCount() {
    return forgotten.sum();
  }

  /** How many blocks are known. */
  public long size() {
    long size = 0;
    for (IndexStripe stripe : stripes) {
      size += stripe.size();
    }
    return size;
  }

  /** Bytes of memory off the heap. */
  long byteSize() {
    long bytes = 0;
    for (IndexStripe stripe : stripes) {
      bytes += stripe.byteSize();
    }
    return bytes;
  }

  private IndexStripe stripe(long hash) {
    return stripes[(int) (hash >>> 58) & (stripes.length - 1)];
  }
}
