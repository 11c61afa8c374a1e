package ucm.store.file.eviction;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.BlockIds;
import ucm.platform.libc.FileOperations;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.format.FolderTree.Folder;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.health.FolderExecutor;

/**
 * Removes the blocks of some folders that were used longest ago, by the access times of their files,
 * until enough is won back.
 *
 * <p>Which blocks go is decided over all directories; each is read and cleared on a thread of its own.
 */
public record Eviction(
    FileOperations files, FolderWalk walk, FolderExecutor executors, Blocks blocks) {

  /**
   * A block in a folder.
   *
   * @param slot of the folder, see {@link FolderTree}
   */
  public record Block(
      int directory, int slot, long idHigh, long idLow, long bytes, long lastUseNanos) {}

  /** The blocks there are to remove. */
  public interface Blocks {

    /** Those of some blocks that may be removed now, in their order. May take its time. */
    default List<Block> removable(List<Block> coldest) {
      return coldest;
    }

    /** Removes a block, unless it must stay; returns whether it was removed. */
    boolean remove(Block block);
  }

  // So many are removed before it is asked which others may go.
  private static final int REMOVALS_AT_ONCE = 256;

  /**
   * Removes blocks.
   *
   * @param folders what may be read
   * @param wanted bytes to win back
   * @return bytes won back
   */
  public long run(List<Folder> folders, long wanted) {
    BitSet directories = new BitSet();
    folders.forEach(folder -> directories.set(folder.directory()));
    Coldest[] found = new Coldest[directories.length()];
    Arrays.setAll(found, directory -> new Coldest(wanted));
    BitSet seen =
        executors.forEach(
            directories,
            directory ->
                walk.forEach(
                    folders.stream().filter(folder -> folder.directory() == directory).toList(),
                    folder -> show(folder, found[directory])));
    // Blocks of a directory that stopped answering would stay, and others with them.
    Coldest cold = new Coldest(wanted);
    seen.stream().forEach(directory -> found[directory].coldestFirst().forEach(cold::offer));
    List<Block> coldest = cold.coldestFirst();
    AtomicLong freed = new AtomicLong();
    for (int from = 0; from < coldest.size() && !walk.isStopped(); from += REMOVALS_AT_ONCE) {
      int to = Math.min(coldest.size(), from + REMOVALS_AT_ONCE);
      List<Block> some = blocks.removable(coldest.subList(from, to));
      executors.forEach(seen, directory -> remove(directory, some, freed));
    }
    return freed.get();
  }

  private void remove(int directory, List<Block> some, AtomicLong freed) {
    for (Block block : some) {
      if (block.directory() == directory && !walk.isStopped()) {
        freed.addAndGet(blocks.remove(block) ? block.bytes() : 0);
        executors.step(directory);
      }
    }
  }

  private void show(Folder folder, Coldest cold) {
    executors.step(folder.directory());
    FolderTree.visit(
        files,
        folder,
        (name, bytes, lastUse) -> {
          executors.step(folder.directory());
          if (cold.takes(lastUse) && BlockPaths.isBlockName(name)) {
            BlockIds id = BlockIds.ofHex(name);
            cold.offer(
                new Block(
                    folder.directory(), folder.slot(), id.high(0), id.low(0), bytes, lastUse));
          }
        });
  }

  /**
   * The coldest of the blocks that are shown to it, as many as are needed to win back some bytes. Holds
   * no more than these. Thread-safe.
   */
  private static final class Coldest {

    private static final Comparator<Block> BY_LAST_USE =
        Comparator.comparingLong(Block::lastUseNanos);

    private final long wantedBytes;

    // The warmest is its head. Guarded by this.
    private final PriorityQueue<Block> blocks = new PriorityQueue<>(BY_LAST_USE.reversed());
    private long bytes;

    Coldest(long wantedBytes) {
      this.wantedBytes = wantedBytes;
    }

    /** Whether a block with this last use would be kept. */
    synchronized boolean takes(long lastUseNanos) {
      Block warmest = blocks.peek();
      return bytes < wantedBytes || (warmest != null && lastUseNanos < warmest.lastUseNanos());
    }

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

    synchronized List<Block> coldestFirst() {
      List<Block> sorted = new ArrayList<>(blocks);
      sorted.sort(BY_LAST_USE);
      return sorted;
    }
  }
}
