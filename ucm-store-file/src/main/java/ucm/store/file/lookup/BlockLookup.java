package ucm.store.file.lookup;

import java.util.BitSet;
import ucm.api.BlockIds;
import ucm.store.file.block.BlockIndex;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.DirectoryHealth;

/**
 * Answers look-ups: from the index what it knows, from the disk the rest. A block of the index may
 * have been removed by another process; that shows when it is loaded. Thread-safe.
 */
public final class BlockLookup implements AutoCloseable {

  private final BlockIndex index;
  private final DiskLookup disk;
  private final DirectoryHealth health;
  private final FileStoreMetrics metrics;
  private final boolean exclusive;

  /**
   * Answers by an index and a disk.
   *
   * @param exclusive whether no other process writes, so that a complete index knows what is absent
   */
  public BlockLookup(
      BlockIndex index,
      DiskLookup disk,
      DirectoryHealth health,
      FileStoreMetrics metrics,
      boolean exclusive) {
    this.index = index;
    this.disk = disk;
    this.health = health;
    this.metrics = metrics;
    this.exclusive = exclusive;
  }

  /** Which blocks are present. */
  public BitSet all(BlockIds ids) {
    BitSet present = indexed(ids);
    int known = present.cardinality();
    if (known < ids.size()) {
      disk.addPresent(ids, present, exclusive);
    }
    hideWhatIsDown(ids, present);
    count(ids.size(), present.cardinality(), known);
    return present;
  }

  /** Which blocks the index knows to be present; the disk is not asked for the others. */
  public BitSet known(BlockIds ids) {
    BitSet present = indexed(ids);
    hideWhatIsDown(ids, present);
    return present;
  }

  private BitSet indexed(BlockIds ids) {
    BitSet present = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      if (index.contains(ids.high(i), ids.low(i))) {
        present.set(i);
      }
    }
    return present;
  }

  /** The index knows blocks that cannot be loaded while their directory is down. */
  private void hideWhatIsDown(BlockIds ids, BitSet present) {
    if (!health.isAnyDown()) {
      return;
    }
    for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
      if (health.hides(ids.high(i), ids.low(i))) {
        present.clear(i);
      }
    }
  }

  /** The last block of the unbroken run of present blocks from the first, or -1. */
  public int prefix(BlockIds ids) {
    int known = 0;
    while (known < ids.size() && index.contains(ids.high(known), ids.low(known))) {
      known++;
    }
    int absent = known;
    if (known < ids.size() && !(exclusive && index.excludes(ids.high(known), ids.low(known)))) {
      absent = disk.firstAbsent(ids, known);
    }
    if (health.isAnyDown()) {
      int down = 0;
      while (down < absent && !health.hides(ids.high(down), ids.low(down))) {
        down++;
      }
      absent = down;
    }
    count(Math.min(ids.size(), absent + 1), absent, known);
    return absent - 1;
  }

  /** Which blocks have a file now, whatever the index says. */
  public BitSet onDisk(BlockIds ids) {
    BitSet present = new BitSet(ids.size());
    disk.addPresent(ids, present, false);
    return present;
  }

  /** A directory is not to be used any more: callers that wait for it have their answer. */
  public void directoryIsDown() {
    disk.directoryIsDown();
  }

  private void count(int asked, int hits, int known) {
    metrics.lookupBlocks.add(asked);
    metrics.lookupHitBlocks.add(hits);
    metrics.lookupKnownBlocks.add(known);
  }

  @Override
  public void close() {
    disk.close();
  }
}
