package ucm.store.file.eviction;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.platform.libc.FileOperations;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;

/**
 * The blocks that were used longest ago, by the access times of their files, of those that are shown to it: as many
 * as are needed to win back some bytes. Holds no more than these. Thread-safe.
 *
 * <p>A time to come is that of a process whose clock was wrong, as of a machine that had not asked yet what time it
 * is. Blocks with one would stay until then, used or not, so they go before all others; one that is used again gets
 * the time of that. They keep their order, as the clock that is wrong may be the one here.
 */
public final class Coldest {

  /** A block in a folder. */
  public record Block(Folder folder, long idHigh, long idLow, long bytes, long lastUseNanos) {}

  private static final Comparator<Block> BY_LAST_USE =
      Comparator.comparingLong(Block::lastUseNanos);

  // Clocks and time zones differ by less.
  private static final long AHEAD_NANOS = TimeUnit.DAYS.toNanos(1);

  private final long wantedBytes;
  private final long latestNanos;

  // The warmest is its head. Guarded by this.
  private final PriorityQueue<Block> blocks = new PriorityQueue<>(BY_LAST_USE.reversed());
  private long bytes;

  /**
   * Of no blocks yet.
   *
   * @param nowNanos since 1970
   */
  public Coldest(long wantedBytes, long nowNanos) {
    this.wantedBytes = wantedBytes;
    latestNanos = nowNanos + AHEAD_NANOS;
  }

  /**
   * Shows it the blocks of a folder.
   *
   * @param step is told of progress
   * @throws ucm.platform.libc.FileException when the folder cannot be read
   */
  public void show(FileOperations files, Folder folder, Runnable step) {
    step.run();
    folder.visit(
        files,
        (name, size, noted) -> {
          step.run();
          long lastUse = noted > latestNanos ? Long.MIN_VALUE + noted : noted;
          if (takes(lastUse) && BlockPaths.isBlockName(name)) {
            BlockIds id = BlockIds.ofHex(name);
            offer(new Block(folder, id.high(0), id.low(0), size, lastUse));
          }
        });
  }

  /** Shows it a block. */
  public synchronized void offer(Block block) {
    if (!takes(block.lastUseNanos)) {
      return;
    }
    blocks.add(block);
    bytes += block.bytes;
    for (Block warmest = blocks.peek();
        warmest != null && bytes - warmest.bytes >= wantedBytes;
        warmest = blocks.peek()) {
      blocks.remove();
      bytes -= warmest.bytes;
    }
  }

  private synchronized boolean takes(long lastUseNanos) {
    Block warmest = blocks.peek();
    return bytes < wantedBytes || (warmest != null && lastUseNanos < warmest.lastUseNanos);
  }

  /** The blocks that are to go, in this order. */
  public synchronized List<Block> coldestFirst() {
    List<Block> sorted = new ArrayList<>(blocks);
    sorted.sort(BY_LAST_USE);
    return sorted;
  }
}
