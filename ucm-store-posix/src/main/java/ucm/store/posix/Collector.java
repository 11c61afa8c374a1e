package ucm.store.posix;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.store.common.FileException;
import ucm.store.common.NativePath;
import ucm.store.posix.FolderTree.Folder;

/**
 * Wins back space: removes the blocks that were used longest ago, by the access times of their files.
 *
 * <p>A round begins when more than the threshold is used, or a file system is at its floor, and
 * removes {@code posix_gc_recycle_percent} of what is used, or as much as leads below the threshold if
 * that is more. In precise mode these are the coldest blocks of all; otherwise the coldest of folders
 * chosen at random, so many as are needed, and only these folders are read.
 *
 * <p>A block that this store is loading is left alone, as is one used since the files were last told
 * of uses. When another process loads it, a local file system keeps the bytes until its file is
 * closed; on NFS the other client gets ESTALE, which is a miss, as is every shard for which the file
 * is opened only after that.
 */
final class Collector {

  /** What it counts. */
  record Metrics(
      StoreMetrics.Counter runs,
      StoreMetrics.Counter removedBlocks,
      StoreMetrics.Counter removedBytes) {

    static Metrics of(StoreMetrics metrics) {
      return new Metrics(
          metrics.counter("posix_gc_runs", "Rounds in which blocks were to be removed"),
          metrics.counter("posix_gc_removed_blocks", "Blocks removed to win back space"),
          metrics.counter("posix_gc_removed_bytes", "Bytes won back"));
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(Collector.class);
  private static final Pattern BLOCK_NAME = Pattern.compile("[0-9a-f]{32}");
  private static final int WORD_DIGITS = 16;
  // What is being loaded is looked up once in this many removals.
  private static final int REMOVALS_AT_ONCE = 64;

  private final BlockFiles files;
  private final SpaceLimit space;
  private final PosixConfig.Gc config;
  private final FolderWalk walk;
  private final LastUses uses;
  private final Supplier<Set<BlockIds>> loading;
  private final Metrics metrics;
  private final Random random = new Random();

  Collector(
      BlockFiles files,
      SpaceLimit space,
      PosixConfig.Gc config,
      FolderWalk walk,
      LastUses uses,
      Supplier<Set<BlockIds>> loading,
      Metrics metrics) {
    this.files = files;
    this.space = space;
    this.config = config;
    this.walk = walk;
    this.uses = uses;
    this.loading = loading;
    this.metrics = metrics;
  }

  /** Makes a round if it is time for one. */
  void run() {
    long used = space.used.used();
    double threshold = config.triggerThresholdRatio() * space.capacityBytes;
    BitSet pressed = space.takePressed();
    List<Folder> folders = new ArrayList<>(space.tree.folders());
    folders.removeIf(folder -> !space.tree.holdsBlocks(folder));
    double wanted;
    if (used > threshold) {
      wanted = Math.max(config.recyclePercent() * used, used - threshold);
    } else if (!pressed.isEmpty()) {
      folders.removeIf(folder -> !pressed.get(folder.backend()));
      long there = folders.stream().mapToLong(this::bytesIn).sum();
      wanted = Math.max(config.recyclePercent() * there, 1);
    } else {
      return;
    }
    metrics.runs().increment();
    long freed =
        config.preciseMode()
            ? collectColdest(folders, (long) Math.ceil(wanted))
            : collectSampled(folders, (long) Math.ceil(wanted));
    LOG.info(
        "Posix removed blocks of {} bytes; {} of {} bytes are used",
        freed,
        space.used.used(),
        space.capacityBytes);
  }

  private long bytesIn(Folder folder) {
    return space.used.inFolder(folder.slot());
  }

  private long collectColdest(List<Folder> folders, long wanted) {
    ColdBlocks cold = new ColdBlocks(wanted);
    walk.forEach(folders, folder -> show(folder, cold));
    int[] removedIn = new int[space.tree.slots()];
    long freed = 0;
    Set<BlockIds> loads = loading.get();
    int n = 0;
    for (ColdBlocks.Block block : cold.coldestFirst()) {
      if (walk.isStopped()) {
        break;
      }
      if (++n % REMOVALS_AT_ONCE == 0) {
        loads = loading.get();
      }
      if (removedIn[block.slot()] < config.maxRecycleCountPerShard() && remove(block, loads)) {
        removedIn[block.slot()]++;
        freed += block.bytes();
      }
    }
    return freed;
  }

  private long collectSampled(List<Folder> folders, long wanted) {
    Collections.shuffle(folders, random);
    int sample = Math.max(1, (int) Math.ceil(config.shardSampleRatio() * folders.size()));
    AtomicLong freed = new AtomicLong();
    long before = -1;
    // Again from the first folder only as long as that wins anything.
    while (freed.get() < wanted && freed.get() > before && !walk.isStopped()) {
      before = freed.get();
      for (int from = 0; from < folders.size() && freed.get() < wanted; from += sample) {
        List<Folder> some = folders.subList(from, Math.min(folders.size(), from + sample));
        walk.forEach(some, folder -> freed.addAndGet(collectIn(folder)));
      }
    }
    return freed.get();
  }

  private long collectIn(Folder folder) {
    double share = config.recyclePercent() * bytesIn(folder);
    ColdBlocks cold = new ColdBlocks(Math.max(1, (long) Math.ceil(share)));
    show(folder, cold);
    Set<BlockIds> loads = loading.get();
    long freed = 0;
    int removed = 0;
    for (ColdBlocks.Block block : cold.coldestFirst()) {
      if (removed < config.maxRecycleCountPerShard() && remove(block, loads)) {
        removed++;
        freed += block.bytes();
      }
    }
    return freed;
  }

  private static void show(Folder folder, ColdBlocks cold) {
    FolderTree.visit(
        folder,
        (name, bytes, lastUse) -> {
          if (cold.takes(lastUse) && BLOCK_NAME.matcher(name).matches()) {
            long high = Long.parseUnsignedLong(name, 0, WORD_DIGITS, 16);
            long low = Long.parseUnsignedLong(name, WORD_DIGITS, 2 * WORD_DIGITS, 16);
            cold.offer(new ColdBlocks.Block(folder.slot(), high, low, bytes, lastUse));
          }
        });
  }

  private boolean remove(ColdBlocks.Block block, Set<BlockIds> loads) {
    long high = block.idHigh();
    long low = block.idLow();
    // A file in a folder that is not its own is no block of ours.
    boolean ours = space.tree.slot(high, low) == block.slot();
    if (!ours || uses.isNew(high, low) || loads.contains(BlockIds.of(high, low))) {
      return false;
    }
    NativePath path = new NativePath();
    try {
      if (!files.seam.remove(files.paths.block(path, high, low))) {
        return false;
      }
      files.lost(path, high, low);
    } catch (FileException e) {
      LOG.warn("Posix cannot remove a block to win back space: {}", e.getMessage());
      return false;
    }
    space.used.removed(block.slot(), block.bytes());
    metrics.removedBlocks().increment();
    metrics.removedBytes().add(block.bytes());
    return true;
  }
}
