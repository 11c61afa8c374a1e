package ucm.store.file.eviction;

import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.health.FolderExecutor;
import ucm.store.file.index.AccessTimeTable;

/** Tells the files when their blocks were last used, see {@link AccessTimeTable}. One caller at a time. */
public final class AccessTimeFlusher {

  private static final Logger LOG = LoggerFactory.getLogger(AccessTimeFlusher.class);

  private final BlockFiles files;
  private final AccessTimeTable uses;
  private final FolderExecutor lanes;
  private final LongSupplier wallNanos;
  private final long patienceNanos;

  /**
   * Tells nothing yet.
   *
   * @param wallNanos the time since 1970
   * @param patienceNanos how long after its use a block that has no file may still be being dumped
   */
  public AccessTimeFlusher(
      BlockFiles files,
      AccessTimeTable uses,
      FolderExecutor lanes,
      LongSupplier wallNanos,
      long patienceNanos) {
    this.files = files;
    this.uses = uses;
    this.lanes = lanes;
    this.wallNanos = wallNanos;
    this.patienceNanos = patienceNanos;
  }

  /** Tells what was not told yet. */
  void run() {
    lanes.forEach(
        lanes.all(),
        backend -> {
          NativePath path = new NativePath();
          uses.drain(
              (high, low) -> files.paths.backendOf(high, low) == backend,
              (high, low, atNanos) -> {
                lanes.step(backend);
                return touch(files.paths.block(path, high, low), atNanos);
              });
        });
  }

  /** Gives a block's file the time of its last use; false to be asked again. */
  private boolean touch(NativePath path, long atNanos) {
    try {
      // One that is not there is still being dumped, or removed.
      return files.seam.touch(path, atNanos) || wallNanos.getAsLong() - atNanos > patienceNanos;
    } catch (FileException e) {
      LOG.debug("{} cannot note the use of a block: {}", files.paths.store(), e.getMessage());
      return true;
    }
  }
}
