package ucm.store.file.block;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.space.UsedSpace;
import ucm.store.file.volume.Volume;

/**
 * Looks at the files that are there, each directory by itself. One pass when the store opens fills the {@link
 * KnownBlocks}, and where space is kept the account of the {@link UsedSpace} as well. Later passes put the account
 * right in the folders that were changed since, by this store or another. What a pass did not see, or could not, is
 * looked up on disk when it is asked for, and seen by the next. Thread-safe; one pass of a directory at a time.
 *
 * <p>A block is taken up that is in its right folder and has the size of one. All bytes count, except those of
 * temporary files of this store, for which room is reserved.
 *
 * <p>A store that keeps no space makes one pass, and nothing waits for it: all directories together rest as long as
 * they work, so that they take half a processor at the most, and end early when the index is full.
 */
public final class BlockScan {

  private static final Logger LOG = LoggerFactory.getLogger(BlockScan.class);
  private static final long WORK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final int CLOCK_MASK = 15;
  private static final int ATTEMPTS = 3;
  // A folder changed so short before a scan may change again without another time of change. One of
  // a time to come, as when the clock was set back, gets another time too.
  private static final long SETTLE_MILLIS = TimeUnit.SECONDS.toMillis(2);
  private static final int NAME_DIGITS = 32;

  private final BlockFiles files;
  private final BlockPaths paths;
  private final UsedSpace used;
  private final StoreKind kind;
  private final int threads;
  private final BooleanSupplier stop;
  private final boolean counts;
  // Directories of which all files are known.
  private final Set<Volume> seen = ConcurrentHashMap.newKeySet();
  // Time of change of the folders that were counted when they had settled, by slot.
  private final Map<Integer, Long> settled = new ConcurrentHashMap<>();

  /**
   * Has looked at nothing yet.
   *
   * @param threads how many look at a directory at once; 0 where no space is kept
   * @param stop ends passes early, this one and later ones
   */
  public BlockScan(BlockFiles files, StoreKind kind, int threads, BooleanSupplier stop) {
    this.files = files;
    this.paths = files.paths;
    this.used = files.space.used;
    this.kind = kind;
    this.threads = threads;
    this.stop = stop;
    this.counts = threads > 0;
  }

  /** Looks at what has changed in all directories that can be used. */
  public void run() {
    Set<Volume> whole = ConcurrentHashMap.newKeySet();
    files.volumes.forEach(
        files.volumes.all(),
        volume -> {
          if (run(volume)) {
            whole.add(volume);
          }
        });
    if (!stop.getAsBoolean()) {
      used.scanned(whole.size() == files.volumes.all().size());
    }
  }

  /**
   * Looks at what has changed in one directory.
   *
   * @return whether that was all there is
   * @throws FileException when the directory cannot be read
   */
  public boolean run(Volume volume) {
    return new Pass(volume).run();
  }

  /** One pass through one directory. */
  private final class Pass {

    private final Volume volume;
    private final boolean indexes;
    private final AtomicBoolean failed = new AtomicBoolean();
    private final AtomicLong bareFiles = new AtomicLong();
    // Of the only thread of a pass that rests.
    private long workingSince = System.nanoTime();
    private int checks;

    Pass(Volume volume) {
      this.volume = volume;
      this.indexes = files.index.isOn() && !seen.contains(volume);
    }

    boolean run() {
      List<Folder> folders = paths.folders(files.operations, volume.number);
      Folder.forEach(kind, threads, folders, this::scan);
      tellBare();
      if (!goesOn() || failed.get()) {
        return false;
      }
      if (counts) {
        forgetGone(folders);
      }
      if (seen.add(volume) && seen.size() == paths.directories().size() && files.index.isOn()) {
        files.index.scanned();
        LOG.info(
            "{} knows {} blocks in {}", paths.store(), files.index.size(), paths.directories());
      }
      return true;
    }

    private boolean goesOn() {
      return !stop.getAsBoolean() && !volume.isDown() && (counts || files.index.forgotten() == 0);
    }

    private void scan(Folder folder) {
      if (goesOn()) {
        volume.step();
        try {
          if (counts) {
            count(folder);
          } else if (paths.holdsBlocks(folder)) {
            var _ = look(folder);
          }
        } catch (FileException e) {
          failed(e);
        }
      }
    }

    private void count(Folder folder) {
      int slot = folder.slot();
      // Before the time of change is asked for: that call may hold this thread for long.
      long now = System.currentTimeMillis();
      long changed = folder.changedMillis(files.operations);
      Long before = settled.get(slot);
      if (before != null && before == changed) {
        return;
      }
      settled.remove(slot);
      boolean isCounted = false;
      for (int attempt = 0; attempt < ATTEMPTS && !isCounted; attempt++) {
        int changes = used.changes(slot);
        long bytes = look(folder);
        isCounted = goesOn() && used.scanned(slot, bytes, changes);
      }
      if (isCounted && Math.abs(now - changed) > SETTLE_MILLIS) {
        settled.put(slot, changed);
      }
    }

    private void forgetGone(List<Folder> folders) {
      Set<Integer> gone = new HashSet<>(settled.keySet());
      gone.removeIf(slot -> paths.directoryOf(slot) != volume.number);
      folders.forEach(folder -> gone.remove(folder.slot()));
      for (int slot : gone) {
        settled.remove(slot);
        used.scanned(slot, 0, used.changes(slot));
      }
    }

    /** Looks at the files of a folder; returns what they take, as far as it goes on. */
    private long look(Folder folder) {
      NativePath path = new NativePath();
      long[] bytes = new long[1];
      try {
        files.operations.forEachName(
            NativePath.of(folder.path()),
            name -> {
              if (counts) {
                volume.step();
              }
              bytes[0] += look(folder, name, path);
              rest();
              return goesOn();
            });
      } catch (FileException e) {
        if (e.errno() != Errno.ENOTDIR) {
          throw e;
        }
        // Also a link to a folder: it leads out of the tree.
        LOG.warn("{} leaves {} alone, which is no folder", paths.store(), folder.path());
      }
      return bytes[0];
    }

    private long look(Folder folder, String name, NativePath path) {
      BlockIds id =
          indexes && files.index.forgotten() == 0 && BlockPaths.isBlockName(name)
              ? BlockIds.ofHex(name)
              : BlockIds.empty();
      boolean isTaken = !id.isEmpty() && paths.slot(id.high(0), id.low(0)) == folder.slot();
      if (!isTaken && (!counts || isOwnTemp(name))) {
        return 0;
      }
      long size =
          isTaken
              ? takeUp(id.high(0), id.low(0), path)
              : files.operations.size(path.set(folder.path()).append('/').append(name));
      return Folder.inUnits(Math.max(0, size));
    }

    /** Has the index know a block if it has a file of the right size; returns the size of what is there. */
    private long takeUp(long high, long low, NativePath path) {
      files.metrics.scannedFiles.increment();
      long stamp = files.index.stamp(high, low);
      long size = files.size(path, high, low);
      bareFiles.addAndGet(files.isBare(size) ? 1 : 0);
      var _ = files.confirm(path, high, low, size, stamp);
      return size;
    }

    /** Whether this store writes the file: {@code <id>.<token>-<number>.tmp}. */
    private boolean isOwnTemp(String name) {
      int end = name.lastIndexOf('-');
      return name.endsWith(BlockPaths.TEMP_SUFFIX)
          && end > NAME_DIGITS
          && volume.lease.owns(name.substring(NAME_DIGITS + 1, end));
    }

    private void rest() {
      if (counts || (++checks & CLOCK_MASK) != 0) {
        return;
      }
      long worked = System.nanoTime() - workingSince;
      if (worked >= WORK_NANOS) {
        int scans = paths.directories().size();
        LockSupport.parkNanos((2 * scans - 1) * Math.min(worked, 10 * WORK_NANOS));
        workingSince = System.nanoTime();
      }
    }

    private void failed(FileException e) {
      if (failed.compareAndSet(false, true)) {
        LOG.warn("{} cannot see all blocks that are there: {}", paths.store(), e.getMessage());
        volume.failedInBackground(e);
      }
    }

    private void tellBare() {
      if (bareFiles.get() > 0 && files.acceptsUnverified) {
        LOG.warn(
            "{} serves {} files without checksums in {}, as accept_unverified is true: nothing"
                + " tells whether they are whole; ucm store adopt {} gives them checksums",
            paths.store(),
            bareFiles,
            volume.directory,
            volume.directory);
      } else if (bareFiles.get() > 0) {
        LOG.info(
            "{} leaves alone {} files without checksums in {}: they are misses; to use them, run"
                + " ucm store adopt {}, or set accept_unverified to true",
            paths.store(),
            bareFiles,
            volume.directory,
            volume.directory);
      }
    }
  }
}
