package ucm.store.file.lookup;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.KnownBlocks;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.volume.Volume;

/**
 * Fills the {@link KnownBlocks} with the files that are there when the store opens, each directory by itself.
 * All scans together rest as long as they work, so that they take half a processor at the most. A scan
 * ends early when the index is full, the directory is down or the store closes; what it did not see, or
 * could not, is looked up on disk when it is asked for. Thread-safe.
 *
 * <p>Only a file in its right folder and of the size of a block is taken up.
 */
public final class IndexScan {

  private static final Logger LOG = LoggerFactory.getLogger(IndexScan.class);
  private static final long WORK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final int CLOCK_MASK = 15;

  private final BlockFiles files;
  private final BlockPaths paths;
  private final AtomicInteger left;

  /** Has looked at nothing yet. */
  public IndexScan(BlockFiles files) {
    this.files = files;
    this.paths = files.paths;
    this.left = new AtomicInteger(paths.directories().size());
  }

  /**
   * Takes up what is in one directory.
   *
   * @return whether that was all there is; not called again when it was
   * @throws FileException when the directory cannot be read
   */
  public boolean run(Volume volume) {
    boolean whole = new Run(volume).run();
    if (whole && left.decrementAndGet() == 0) {
      files.index.scanned();
      LOG.info("{} knows {} blocks in {}", paths.store(), files.index.size(), paths.directories());
    }
    return whole;
  }

  /** One scan of one directory. */
  private final class Run {

    private final Volume volume;
    private final NativePath path = new NativePath();
    private boolean failed;
    private long bareFiles;
    private long workingSince = System.nanoTime();
    private int checks;

    Run(Volume volume) {
      this.volume = volume;
    }

    boolean run() {
      files.operations.list(paths.inDirectory(volume.number, ".")).stream()
          .filter(BlockPaths::isFolderName)
          .forEach(this::scan);
      if (bareFiles > 0 && files.acceptsUnverified) {
        LOG.warn(
            "{} serves {} files without checksums in {}, as accept_unverified is true: nothing"
                + " tells whether they are whole; ucm store adopt {} gives them checksums",
            paths.store(),
            bareFiles,
            volume.directory,
            volume.directory);
      } else if (bareFiles > 0) {
        LOG.info(
            "{} leaves alone {} files without checksums in {}: they are misses; to use them, run"
                + " ucm store adopt {}, or set accept_unverified to true",
            paths.store(),
            bareFiles,
            volume.directory,
            volume.directory);
      }
      return goesOn() && !failed;
    }

    private void scan(String folder) {
      if (!goesOn()) {
        return;
      }
      try {
        files.operations.forEachName(
            paths.inDirectory(volume.number, folder), name -> check(folder, name));
      } catch (FileException e) {
        if (e.errno() != Errno.ENOTDIR) {
          failed(e);
          return;
        }
        // Also a link to a folder: it leads out of the tree.
        LOG.warn(
            "{} leaves {}/{} alone, which is no folder", paths.store(), volume.directory, folder);
      }
    }

    private boolean check(String folder, String name) {
      if (BlockPaths.isBlockName(name)) {
        BlockIds id = BlockIds.ofHex(name);
        long high = id.high(0);
        long low = id.low(0);
        if (paths.directoryOf(high, low) == volume.number
            && paths.folderName(high).equals(folder)) {
          check(high, low);
        }
      }
      rest();
      return goesOn();
    }

    private void check(long high, long low) {
      files.metrics.scannedFiles.increment();
      try {
        long stamp = files.index.stamp(high, low);
        long size = files.size(path, high, low);
        bareFiles += files.isBare(size) ? 1 : 0;
        var _ = files.confirm(path, high, low, size, stamp);
      } catch (FileException e) {
        failed(e);
      }
    }

    private boolean goesOn() {
      return !files.volumes.isClosing() && files.index.forgotten() == 0 && !volume.isDown();
    }

    private void rest() {
      if ((++checks & CLOCK_MASK) != 0) {
        return;
      }
      long worked = System.nanoTime() - workingSince;
      if (worked >= WORK_NANOS) {
        int scans = paths.directories().size();
        LockSupport.parkNanos((2 * scans - 1) * Math.min(worked, 10 * WORK_NANOS));
        workingSince = System.nanoTime();
      }
    }

    private void failed(RuntimeException e) {
      if (!failed) {
        LOG.warn("{} cannot see all blocks that are there: {}", paths.store(), e.getMessage());
        volume.failedInBackground(e);
      }
      failed = true;
    }
  }
}
