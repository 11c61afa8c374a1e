package ucm.store.file.eviction;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.format.FolderTree.Folder;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.health.FolderExecutor;
import ucm.store.file.space.SpaceLimit;

/**
 * Wins back space: removes the blocks that were used longest ago, by the access times of their files.
 *
 * <p>A round begins when more than the threshold is used, or a file system is at its floor, and
 * removes {@code gc_recycle_percent} of what is used, or as much as leads below the threshold if
 * that is more. {@link Eviction} says which blocks these are. Directories that are down are left out.
 * As a block counts as used after those that follow it in a prompt ({@link AccessTimeTable}), the leaves
 * of a prompt go before its root.
 *
 * <p>A block that this store is loading is left alone, as is one used since the times were last written
 * of uses. When another process loads it, a local file system keeps the bytes until its file is
 * closed; on NFS the other client gets ESTALE, which is a miss, as is every shard for which the file
 * is opened only after that.
 */
public final class Collector implements Eviction.Blocks {

  private static final Logger LOG = LoggerFactory.getLogger(Collector.class);

  private final BlockFiles files;
  private final SpaceLimit space;
  private final FileStoreConfig.Gc config;
  private final FolderExecutor executors;
  private final Eviction eviction;
  private final AccessTimeTable uses;
  private final Supplier<Set<BlockIds>> loading;
  private final StoreMetrics.Counter runs;
  private final StoreMetrics.Counter removedBlocks;
  private final StoreMetrics.Counter removedBytes;
  private final @Nullable EvictionGuard guard;
  private volatile boolean running;

  public Collector(
      BlockFiles files,
      SpaceLimit space,
      FileStoreConfig.Gc config,
      FolderWalk walk,
      FolderExecutor executors,
      AccessTimeTable uses,
      Supplier<Set<BlockIds>> loading,
      StoreMetrics metrics,
      @Nullable EvictionGuard guard) {
    this.files = files;
    this.space = space;
    this.config = config;
    this.executors = executors;
    this.uses = uses;
    this.loading = loading;
    runs = metrics.counter("gc_runs", "Rounds in which blocks were to be removed");
    removedBlocks = metrics.counter("gc_removed_blocks", "Blocks removed to win back space");
    removedBytes = metrics.counter("gc_removed_bytes", "Bytes won back");
    this.guard = guard;
    eviction = new Eviction(files.operations, walk, executors, this);
  }

  /**
   * Makes a round if it is time for one.
   *
   * @param directories where this process may remove something
   * @return whether there was nothing to do, or something was removed
   */
  boolean run(BitSet directories) {
    long used = space.used.used();
    double threshold = config.triggerThresholdRatio() * space.capacityBytes;
    BitSet pressed = space.takePressed();
    long missing = space.isAwaited() ? space.missingBytes() : 0;
    if (used <= threshold && pressed.isEmpty() && missing <= 0) {
      return true;
    }
    List<Folder> folders = folders(directories);
    double wanted;
    if (used > threshold || missing > 0) {
      wanted =
          Math.max(config.recyclePercent() * used, Math.max(used - threshold, (double) missing));
    } else {
      folders.removeIf(folder -> !pressed.get(folder.directory()));
      long there = folders.stream().mapToLong(this::bytesIn).sum();
      wanted = Math.max(config.recyclePercent() * there, 1);
    }
    runs.increment();
    running = true;
    long freed;
    try {
      freed = eviction.run(folders, (long) Math.ceil(wanted));
    } finally {
      running = false;
    }
    LOG.info(
        "{} removed blocks of {} bytes; {} of {} bytes are used",
        files.paths.store(),
        freed,
        space.used.used(),
        space.capacityBytes);
    return freed > 0;
  }

  public boolean isRunning() {
    return running;
  }

  private List<Folder> folders(BitSet directories) {
    List<Folder> folders = Collections.synchronizedList(new ArrayList<>());
    executors.forEach(
        directories,
        directory ->
            space.tree.folders(files.operations, directory).stream()
                .filter(space.tree::holdsBlocks)
                .forEach(folders::add));
    // A thread that was given up may still add to that.
    synchronized (folders) {
      return new ArrayList<>(folders);
    }
  }

  private long bytesIn(Folder folder) {
    return space.used.inFolder(folder.slot());
  }

  @Override
  public boolean isGuarded() {
    return guard != null;
  }

  @Override
  public List<Eviction.Block> removable(List<Eviction.Block> coldest) {
    if (guard == null) {
      return coldest;
    }
    long[] words = new long[2 * coldest.size()];
    for (int i = 0; i < coldest.size(); i++) {
      words[2 * i] = coldest.get(i).idHigh();
      words[2 * i + 1] = coldest.get(i).idLow();
    }
    return guard.mayGo(BlockIds.wrap(words)).stream().mapToObj(coldest::get).toList();
  }

  @Override
  public Set<BlockIds> busy() {
    uses.raise();
    return loading.get();
  }

  @Override
  public boolean remove(Eviction.Block block, Set<BlockIds> loads) {
    long high = block.idHigh();
    long low = block.idLow();
    // A file in a folder that is not its own is no block of ours.
    boolean ours = space.tree.slot(high, low) == block.slot();
    if (!ours || uses.isNew(high, low) || loads.contains(BlockIds.of(high, low))) {
      return false;
    }
    NativePath path = new NativePath();
    try {
      if (!files.operations.remove(files.paths.block(path, high, low))) {
        return false;
      }
      files.lost(path, high, low);
    } catch (FileException e) {
      LOG.warn(
          "{} cannot remove a block to win back space: {}", files.paths.store(), e.getMessage());
      return false;
    }
    space.used.removed(block.slot(), block.bytes());
    removedBlocks.increment();
    removedBytes.add(block.bytes());
    return true;
  }
}
