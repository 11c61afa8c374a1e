package ucm.store.file.eviction;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.BlockIds;
import ucm.platform.libc.FileOperations;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.format.FolderTree.Folder;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.health.FolderExecutor;

/**
 * Removes the blocks of some folders that were used longest ago, by the access times of their files,
 * until enough is won back. In precise mode these are the coldest blocks of all; otherwise the coldest
 * of folders chosen at random, so many as are needed, and only these folders are read. Where blocks are
 * guarded it is the coldest of all.
 *
 * <p>Which blocks go is decided over all directories; each is read and cleared on a thread of its own.
 */
public record Eviction(
    FileOperations files,
    FileStoreConfig.Gc config,
    FolderWalk walk,
    FolderExecutor executors,
    Blocks blocks) {

  /**
   * A block in a folder.
   *
   * @param slot of the folder, see {@link FolderTree}
   */
  public record Block(int slot, long idHigh, long idLow, long bytes, long lastUseNanos) {}

  /** The blocks there are to remove. */
  public interface Blocks {

    /** Blocks that must stay for now; asked from time to time. */
    Set<BlockIds> busy();

    /** Removes a block, unless it must stay; returns whether it was removed. */
    boolean remove(Block block, Set<BlockIds> busy);

    /** What a folder holds, in bytes. */
    long bytesIn(Folder folder);

    /** Whether {@link #removable} has to be asked; the coldest blocks of all are shown to it then. */
    default boolean isGuarded() {
      return false;
    }

    /** Those of some blocks that may be removed, in their order. May take its time. */
    default List<Block> removable(List<Block> coldest) {
      return coldest;
    }
  }

  // What must stay is asked once in this many removals.
  private static final int REMOVALS_AT_ONCE = 64;
  // So many are removed before a guard is asked about others.
  private static final int GUARDED_AT_ONCE = 256;

  /**
   * Removes blocks.
   *
   * @param folders what may be read
   * @param wanted bytes to win back
   * @return bytes won back
   */
  public long run(List<Folder> folders, long wanted) {
    return config.preciseMode() || blocks.isGuarded()
        ? coldest(folders, wanted)
        : sampled(folders, wanted);
  }

  private static BitSet directories(List<Folder> folders) {
    BitSet directories = new BitSet();
    folders.forEach(folder -> directories.set(folder.directory()));
    return directories;
  }

  private static List<Folder> in(int directory, List<Folder> folders) {
    return folders.stream().filter(folder -> folder.directory() == directory).toList();
  }

  private long coldest(List<Folder> folders, long wanted) {
    BitSet directories = directories(folders);
    Coldest[] found = new Coldest[directories.length()];
    Arrays.setAll(found, directory -> new Coldest(wanted));
    BitSet seen =
        executors.forEach(
            directories,
            directory ->
                walk.forEach(in(directory, folders), folder -> show(folder, found[directory])));
    // Blocks of a directory that stopped answering would stay, and others with them.
    Coldest cold = new Coldest(wanted);
    seen.stream().forEach(directory -> found[directory].coldestFirst().forEach(cold::offer));
    int[] directoryOf = new int[1 + folders.stream().mapToInt(Folder::slot).max().orElse(0)];
    folders.forEach(folder -> directoryOf[folder.slot()] = folder.directory());
    List<Block> coldest = cold.coldestFirst();
    AtomicLong freed = new AtomicLong();
    // Each slot is of one directory, and so of one thread.
    int[] removedIn = new int[directoryOf.length];
    int step = blocks.isGuarded() ? GUARDED_AT_ONCE : Math.max(1, coldest.size());
    for (int from = 0; from < coldest.size() && !walk.isStopped(); from += step) {
      int to = Math.min(coldest.size(), from + step);
      List<Block> some = blocks.removable(coldest.subList(from, to));
      executors.forEach(
          seen,
          directory ->
              remove(
                  directory,
                  some.stream().filter(block -> directoryOf[block.slot()] == directory).toList(),
                  removedIn,
                  freed));
    }
    return freed.get();
  }

  private void remove(int directory, List<Block> coldest, int[] removedIn, AtomicLong freed) {
    Set<BlockIds> busy = blocks.busy();
    int n = 0;
    for (Block block : coldest) {
      if (walk.isStopped()) {
        return;
      }
      if (++n % REMOVALS_AT_ONCE == 0) {
        busy = blocks.busy();
      }
      if (removedIn[block.slot()] < config.maxRecycleCountPerShard()
          && blocks.remove(block, busy)) {
        removedIn[block.slot()]++;
        freed.addAndGet(block.bytes());
      }
      executors.step(directory);
    }
  }

  private long sampled(List<Folder> folders, long wanted) {
    List<Folder> shuffled = new ArrayList<>(folders);
    Collections.shuffle(shuffled);
    int sample = Math.max(1, (int) Math.ceil(config.shardSampleRatio() * shuffled.size()));
    AtomicLong freed = new AtomicLong();
    long before = -1;
    // Again from the first folder only as long as that wins anything.
    while (freed.get() < wanted && freed.get() > before && !walk.isStopped()) {
      before = freed.get();
      for (int from = 0; from < shuffled.size() && freed.get() < wanted; from += sample) {
        List<Folder> some = shuffled.subList(from, Math.min(shuffled.size(), from + sample));
        executors.forEach(
            directories(some),
            directory ->
                walk.forEach(in(directory, some), folder -> freed.addAndGet(coldestOf(folder))));
      }
    }
    return freed.get();
  }

  private long coldestOf(Folder folder) {
    double share = config.recyclePercent() * blocks.bytesIn(folder);
    Coldest cold = new Coldest(Math.max(1, (long) Math.ceil(share)));
    show(folder, cold);
    AtomicLong freed = new AtomicLong();
    remove(folder.directory(), cold.coldestFirst(), new int[folder.slot() + 1], freed);
    return freed.get();
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
            cold.offer(new Block(folder.slot(), id.high(0), id.low(0), bytes, lastUse));
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
