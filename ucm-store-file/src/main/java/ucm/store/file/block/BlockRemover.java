package ucm.store.file.block;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.FolderTree;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.space.SpaceLimit;

/**
 * Removes the files of blocks on request. The files are removed on the thread of
 * {@link DeferredCleanup}, so that a file system that hangs does not hold the caller beyond its deadline.
 * Thread-safe.
 */
public final class BlockRemover {

  private static final Logger LOG = LoggerFactory.getLogger(BlockRemover.class);

  private final BlockFiles files;
  private final SpaceLimit space;
  private final DirectoryHealth health;
  private final DeferredCleanup cleanup;
  private final long timeoutNanos;

  public BlockRemover(
      BlockFiles files,
      SpaceLimit space,
      DirectoryHealth health,
      DeferredCleanup cleanup,
      long timeoutNanos) {
    this.files = files;
    this.space = space;
    this.health = health;
    this.cleanup = cleanup;
    this.timeoutNanos = timeoutNanos;
  }

  /**
   * Removes blocks, and waits for that as long as a task may take.
   *
   * @return the blocks that have no file any more
   */
  public BitSet remove(BlockIds ids) {
    AtomicIntegerArray gone = new AtomicIntegerArray(ids.size());
    CountDownLatch done = new CountDownLatch(1);
    cleanup.add(
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
    BitSet answer = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      answer.set(i, gone.get(i) != 0);
    }
    return answer;
  }

  private void removeAll(BlockIds ids, AtomicIntegerArray gone) {
    NativePath path = new NativePath();
    for (int i = 0; i < ids.size(); i++) {
      long high = ids.high(i);
      long low = ids.low(i);
      if (health.isDown(high, low)) {
        continue;
      }
      try {
        remove(path, high, low);
        gone.set(i, 1);
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
    if (removed && space.isLimited()) {
      space.used.removed(space.tree.slot(high, low), FolderTree.inUnits(size));
    }
  }
}
