package ucm.store.file.eviction;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;

/**
 * The coldest of the blocks that are shown to it, as many as are needed to win back some bytes. Holds
 * no more than these. Thread-safe.
 */
public final class ColdBlocks {

  /**
   * A block in a folder.
   *
   * @param slot of the folder, see {@code FolderTree}
   */
  public record Block(int slot, long idHigh, long idLow, long bytes, long lastUseNanos) {}

  private static final Comparator<Block> BY_LAST_USE =
      Comparator.comparingLong(Block::lastUseNanos);

  private final long wantedBytes;

  // The warmest is its head. Guarded by this.
  private final PriorityQueue<Block> blocks = new PriorityQueue<>(BY_LAST_USE.reversed());
  private long bytes;

  ColdBlocks(long wantedBytes) {
    this.wantedBytes = wantedBytes;
  }

  /** Whether a block with this last use would be kept. */
  synchronized boolean takes(long lastUseNanos) {
    Block warmest = blocks.peek();
    return bytes < wantedBytes || (warmest != null && lastUseNanos < warmest.lastUseNanos());
  }

  /** Shows a block. */
  synchronized void offer(Block block) {
    if (!takes(block.lastUseNanos())) {
      return;
    }
    blocks.add(block);
    bytes += block.bytes();
    for (Block warmest = blocks.peek();
        warmest != null && bytes - warmest.bytes() >= wantedBytes;
        warmest = blocks.peek()) {
      blocks.remove();
      bytes -= warmest.bytes();
    }
  }

  /** Those kept, coldest first. */
  synchronized List<Block> coldestFirst() {
    List<Block> sorted = new ArrayList<>(blocks);
    sorted.sort(BY_LAST_USE);
    return sorted;
  }
}
