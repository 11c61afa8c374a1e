package ucm.store.file.lookup;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.index.BlockIndex;

/**
 * Fills the {@link BlockIndex} with the files that are there in one directory when the store opens. Runs
 * on a thread of its own; those of all directories together rest as long as they work, so that they take
 * half a processor at the most. It ends early when the index is full, the directory is down or the store
 * closes; what it did not see, or could not, is looked up on disk when it is asked for.
 *
 * <p>Only a file in its right folder and of the size of a block is taken up.
 */
final class IndexScan {

  private static final Logger LOG = LoggerFactory.getLogger(IndexScan.class);
  private static final Pattern BLOCK_NAME = Pattern.compile("[0-9a-f]{32}");
  private static final Pattern FOLDER_NAME = Pattern.compile("data|[0-9a-f]{1,5}");
  private static final long WORK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final int CLOCK_MASK = 15;

  private final BlockFiles files;
  private final BlockPaths paths;
  private final BlockIndex index;
  private final FileStoreMetrics metrics;
  private final DirectoryHealth health;
  private final int directory;
  private final NativePath path = new NativePath();
  private volatile boolean stopped;
  private boolean failed;
  private long bareFiles;
  private long workingSince;
  private int checks;

  IndexScan(
      BlockFiles files,
      BlockIndex index,
      FileStoreMetrics metrics,
      DirectoryHealth health,
      int directory) {
    this.health = health;
    this.directory = directory;
    this.files = files;
    this.paths = files.paths;
    this.index = index;
    this.metrics = metrics;
  }

  /** Ends the run soon. */
  void stop() {
    stopped = true;
  }

  /**
   * Takes up what is there.
   *
   * @return whether that was all there is
   * @throws FileException when the directory cannot be read
   */
  boolean run() {
    failed = false;
    bareFiles = 0;
    workingSince = System.nanoTime();
    for (String folder : folders()) {
      scan(folder);
    }
    if (bareFiles > 0) {
      reportBareFiles();
    }
    return goesOn() && !failed;
  }

  private void reportBareFiles() {
    String path = paths.directories().get(directory);
    if (files.acceptsUnverified()) {
      LOG.warn(
          "{} serves {} files without checksums in {}, as accept_unverified is true: nothing tells"
              + " whether they are whole; ucm store adopt {} gives them checksums",
          paths.store(),
          bareFiles,
          path,
          path);
    } else {
      LOG.info(
          "{} leaves alone {} files without checksums in {}: they are misses; to use them, run ucm"
              + " store adopt {}, or set accept_unverified to true",
          paths.store(),
          bareFiles,
          path,
          path);
    }
  }

  private List<String> folders() {
    return files.operations.list(paths.inDirectory(new NativePath(), directory, ".")).stream()
        .filter(name -> FOLDER_NAME.matcher(name).matches())
        .toList();
  }

  private void scan(String folder) {
    if (!goesOn()) {
      return;
    }
    try {
      files.operations.forEachName(
          paths.inDirectory(new NativePath(), directory, folder), name -> check(folder, name));
    } catch (FileException e) {
      if (e.errno() != Errno.ENOTDIR) {
        failed(e);
        return;
      }
      // Also a link to a folder: it leads out of the tree.
      LOG.warn(
          "{} leaves {}/{} alone, which is no folder",
          paths.store(),
          paths.directories().get(directory),
          folder);
    }
  }

  private boolean check(String folder, String name) {
    if (BLOCK_NAME.matcher(name).matches()) {
      BlockIds id = BlockIds.ofHex(name);
      long high = id.high(0);
      long low = id.low(0);
      if (paths.directoryOf(high, low) == directory && paths.folderName(high).equals(folder)) {
        check(high, low);
      }
    }
    rest();
    return goesOn();
  }

  private void check(long high, long low) {
    metrics.scannedFiles().increment();
    try {
      long removals = files.removals(high, low);
      long size = files.size(path, high, low);
      bareFiles += files.isBare(size) ? 1 : 0;
      boolean _ = files.isPresent(path, high, low, size, removals);
    } catch (FileException e) {
      failed(e);
    }
  }

  private boolean goesOn() {
    return !stopped && !index.hasForgotten() && health.refusal(directory) == null;
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
      health.failedInBackground(directory, e);
    }
    failed = true;
  }
}
