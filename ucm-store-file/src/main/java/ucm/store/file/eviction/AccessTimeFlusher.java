package ucm.store.file.eviction;

import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.health.FolderExecutor;

/**
 * Writes to the files when their blocks were last used, see {@link AccessTimeTable}. Thread-safe.
 *
 * @param wallNanos the time since 1970
 * @param patienceNanos how long after its use a block that has no file may still be being dumped
 */
public record AccessTimeFlusher(
    BlockFiles files,
    AccessTimeTable uses,
    FolderExecutor executors,
    LongSupplier wallNanos,
    long patienceNanos) {

  private static final Logger LOG = LoggerFactory.getLogger(AccessTimeFlusher.class);

  /** Writes what was not written yet. */
  public synchronized void run() {
    executors.forEach(
        executors.all(),
        directory -> {
          NativePath path = new NativePath();
          uses.drain(
              (high, low) -> files.paths.directoryOf(high, low) == directory,
              (high, low, atNanos) -> {
                executors.step(directory);
                return touch(files.paths.block(path, high, low), atNanos);
              });
        });
  }

  /** Gives a block's file the time of its last use; false to be asked again. */
  private boolean touch(NativePath path, long atNanos) {
    try {
      // One that is not there is still being dumped, or removed.
      return files.operations.touch(path, atNanos)
          || wallNanos.getAsLong() - atNanos > patienceNanos;
    } catch (FileException e) {
      LOG.debug("{} cannot note the use of a block: {}", files.paths.store(), e.getMessage());
      return true;
    }
  }
}
