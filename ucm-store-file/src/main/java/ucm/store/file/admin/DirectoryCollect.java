package ucm.store.file.admin;

import static java.util.Comparator.comparing;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.admin.StoreDirectories.CollectResult;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;
import ucm.store.file.eviction.Coldest;
import ucm.store.file.eviction.Coldest.Block;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.lease.CollectorLease;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.lease.FileLock;
import ucm.store.file.lease.WriterLease;

/**
 * Makes room in directories on request, as the engines do: what dead writers left goes first, then the {@linkplain
 * Coldest coldest} blocks. A block that an engine is loading meanwhile is safe as it is from a collector of another
 * process.
 */
final class DirectoryCollect {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryCollect.class);

  private final StoreKind kind;
  private final FileOperations files;
  private final List<FoundDirectory> directories;
  private final boolean isDry;
  private final Observer observer;
  private final int threads;
  private final List<Folder> folders = new ArrayList<>();
  private long deadTemps;

  // Kept in a dry run only, in which nothing vanishes.
  private final Set<BlockIds> chosen = new HashSet<>();
  private long removedBlocks;
  private long removedBytes;

  DirectoryCollect(
      BlockDirectories of, List<FoundDirectory> directories, boolean isDry, Observer observer) {
    this.kind = of.kind();
    this.files = of.files();
    this.directories = directories;
    this.threads = Math.max(1, of.gc().concurrency() / directories.size());
    this.isDry = isDry;
    this.observer = observer;
  }

  /**
   * Makes room.
   *
   * @param target how much may stay, given what is used
   * @throws ucm.api.StoreException when another process collects, or a directory cannot be used
   */
  CollectResult run(LongUnaryOperator target) {
    List<String> roots = directories.stream().map(FoundDirectory::root).toList();
    BlockPaths paths = new BlockPaths(kind.name(), roots, 0);
    List<CollectorLease> leases =
        IntStream.range(0, isDry ? 0 : roots.size())
            .boxed()
            .sorted(comparing(roots::get))
            .map(i -> new CollectorLease(files, paths, i))
            .toList();
    try {
      leases.forEach(CollectorLease::hold);
      removeLeftovers(paths);
      long used = measure();
      long keep = target.applyAsLong(used);
      long wanted = Math.max(0, used - keep);
      if (wanted > 0 && !observer.isStopped()) {
        removeColdest(wanted);
      }
      return new CollectResult(
          used, keep, removedBlocks, removedBytes, deadTemps, !observer.isStopped());
    } finally {
      leases.forEach(CollectorLease::release);
    }
  }

  private void removeLeftovers(BlockPaths paths) {
    DeadWriters dead = new DeadWriters(files, paths, removed -> deadTemps += removed);
    for (int i = 0; i < directories.size(); i++) {
      FoundDirectory directory = directories.get(i);
      Map<String, FileLock.Owner> writers = new HashMap<>();
      directory.forEachName(
          observer,
          (folder, name) -> removeLeftover(directory, folder, name, writers),
          (_, e) -> leftAlone(e));
      if (!isDry) {
        sweep(dead, new WriterLease(files, paths, i));
      }
    }
  }

  private void sweep(DeadWriters dead, WriterLease own) {
    try {
      var _ = dead.sweep(own, () -> !observer.isStopped());
    } catch (RuntimeException e) {
      LOG.warn(
          "{} cannot search for temporary files of dead writers: {}", kind.name(), e.getMessage());
    }
  }

  /** Removes a temporary file of a dead writer, whose lease may be gone; one that is left is the sweep's. */
  private void removeLeftover(
      FoundDirectory directory, String folder, String name, Map<String, FileLock.Owner> writers) {
    if (directory.writer(name, writers) == FileLock.Owner.DEAD
        && (isDry || files.remove(NativePath.of(directory.path(folder, name))))) {
      deadTemps++;
    }
  }

  private void leftAlone(FileException e) {
    LOG.warn("{} leaves alone what it cannot read: {}", kind.name(), e.getMessage());
  }

  /** Finds the folders; returns what they and the quarantines hold, in bytes. */
  private long measure() {
    AtomicLong all = new AtomicLong();
    for (int i = 0; i < directories.size(); i++) {
      FoundDirectory directory = directories.get(i);
      for (String name : directory.folders()) {
        Folder folder = new Folder(i, folders.size(), directory.root() + "/" + name);
        try {
          folder.visit(files, (file, bytes, lastUse) -> all.addAndGet(bytes));
          folders.add(folder);
        } catch (FileException e) {
          leftAlone(e);
        }
      }
      new Folder(i, 0, directory.root() + "/" + BlockPaths.QUARANTINE)
          .visit(files, (file, bytes, lastUse) -> all.addAndGet(bytes));
    }
    return all.get();
  }

  private void removeColdest(long wanted) {
    Coldest cold = new Coldest(wanted, TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()));
    Folder.forEach(kind, threads, folders, folder -> cold.show(files, folder, () -> {}));
    for (Block block : cold.coldestFirst()) {
      if (!observer.isStopped() && remove(block)) {
        removedBlocks++;
        removedBytes += block.bytes();
        observer.at(removedBytes, wanted);
      }
    }
  }

  private boolean remove(Block block) {
    String name = BlockIds.hex(block.idHigh(), block.idLow());
    String folder = block.folder().path();
    // A file in a folder that is not its own is no block.
    if (!FoundDirectory.belongs(new File(folder).getName(), name)) {
      return false;
    }
    try {
      return isDry
          ? chosen.add(BlockIds.of(block.idHigh(), block.idLow()))
          : files.remove(NativePath.of(folder + "/" + name));
    } catch (FileException e) {
      LOG.warn("{} cannot remove a block to win back space: {}", kind.name(), e.getMessage());
      return false;
    }
  }
}
