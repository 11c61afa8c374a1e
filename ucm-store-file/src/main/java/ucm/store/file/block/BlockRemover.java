package ucm.store.file.block;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.FolderTree;
import ucm.store.file.health.Volumes;
import ucm.store.file.space.SpaceLimit;

/**
 * Removes the files of blocks on request. The files are removed on the thread of
 * {@link Volumes#later}, so that a file system that hangs does not hold the caller beyond its deadline.
 * Thread-safe.
 */
public record BlockRemover(BlockFiles files, Volumes volumes, long timeoutNanos) {

  private static final Logger LOG = LoggerFactory.getLogger(BlockRemover.class);

  /** Removes blocks within the time of a task; returns those that have no file any more. */
  public BitSet remove(BlockIds ids) {
    BitSet gone = new BitSet(ids.size());
    CountDownLatch done = new CountDownLatch(1);
    volumes.later(
        () -> {
          try {
            removeAll(ids, gone);
          } finally {
            done.countDown();
          }
        });
    try {
      if (!done.await(timeoutNanos, TimeUnit.NANOSECONDS)) {
        LOG.warn("{}: removing {} blocks takes too long", files.paths.store(), ids.size());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    synchronized (gone) {
      return (BitSet) gone.clone();
    }
  }

  private void removeAll(BlockIds ids, BitSet gone) {
    NativePath path = new NativePath();
    for (int i = 0; i < ids.size(); i++) {
      long high = ids.high(i);
      long low = ids.low(i);
      if (volumes.isDown(high, low)) {
        continue;
      }
      try {
        remove(path, high, low);
        synchronized (gone) {
          gone.set(i);
        }
      } catch (FileException e) {
        LOG.warn("{} cannot remove a block: {}", files.paths.store(), e.getMessage());
      }
    }
  }

  private void remove(NativePath path, long high, long low) {
    files.operations.requireOwn(files.paths.folder(path, files.paths.directoryOf(high, low), high));
    long size = files.operations.size(files.paths.block(path, high, low));
    boolean removed = size >= 0 && files.operations.remove(path);
    files.lost(path, high, low);
    SpaceLimit space = files.space;
    if (removed && space.isLimited()) {
      space.used.removed(space.tree.slot(high, low), FolderTree.inUnits(size));
    }
  }
}
