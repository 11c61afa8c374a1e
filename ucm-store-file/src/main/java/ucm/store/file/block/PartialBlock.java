package ucm.store.file.block;

import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;

/**
 * A block of which some shards are written to a temporary file and others are still to come.
 *
 * <p>Writers {@link #enter}, write their shards side by side, and {@link #leave}. The writer that leaves
 * last, when all shards are there or one has failed, is told so; the file is then its alone, to commit
 * or to remove. What counts is how many shards are written, not which came last. No system call is
 * made under the lock of this, so that questions about the block never wait for the file system.
 */
final class PartialBlock {

  final BlockIds id;
  final long idHigh;
  final long idLow;

  private final BlockFiles files;
  private final long tempNumber;

  // Held while the file is opened, by one writer for all.
  private final Object opening = new Object();

  // Guarded by this.
  private final int[] crcs;
  private final BitSet written = new BitSet();
  private int inside;
  private int fd = FileOperations.ABSENT;
  private boolean created;
  private long firstTask;
  private boolean ending;
  private @Nullable RuntimeException failure;
  private long lastNanos;

  // Completed when the block is committed, or its file removed.
  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  PartialBlock(BlockFiles files, long idHigh, long idLow, long firstTask, long now) {
    this.files = files;
    this.id = BlockIds.of(idHigh, idLow);
    this.idHigh = idHigh;
    this.idLow = idLow;
    this.firstTask = firstTask;
    this.tempNumber = files.nextTemp();
    this.crcs = new int[files.format.layout().shardCount()];
    this.lastNanos = now;
  }

  /** A task brings shards, or finds them brought by others. */
  synchronized void broughtBy(long task) {
    firstTask = Math.min(firstTask, task);
  }

  /** The first of the tasks whose shards are in it. */
  synchronized long firstTask() {
    return firstTask;
  }

  /** Whether a shard is there, so that writing it again would change nothing. */
  synchronized boolean has(int shard) {
    return written.get(shard) && failure == null;
  }

  /**
   * Opens the temporary file for one writer more.
   *
   * @param io gets the name of the file
   * @return its descriptor, or {@link FileOperations#ABSENT} when the block is ending
   * @throws FileException when it cannot be opened; the writer is inside all the same, and leaves
   */
  int enter(ShardIo io) {
    synchronized (this) {
      if (ending || failure != null) {
        return FileOperations.ABSENT;
      }
      inside++;
    }
    nameTemp(io.temp);
    synchronized (opening) {
      int opened = fd();
      if (opened != FileOperations.ABSENT) {
        return opened;
      }
      opened =
          isCreated()
              ? files.reopenTemp(io.temp)
              : files.createTemp(io.temp, io.folder, idHigh, idLow);
      if (opened < 0) {
        throw new FileException("open", io.temp, Errno.ENOENT);
      }
      synchronized (this) {
        fd = opened;
        created = true;
      }
      files.keptTemps.incrementAndGet();
      return opened;
    }
  }

  private synchronized int fd() {
    return fd;
  }

  /** Marks a shard as written; called inside. */
  synchronized void wrote(int shard, int crc) {
    crcs[shard] = crc;
    written.set(shard);
  }

  /**
   * Ends one writer's part, with what went wrong or null. Where too many files are kept open, the file of a
   * block that rests is closed, and opened again for the next shard.
   *
   * @return whether the file is now the caller's alone, to be ended
   */
  boolean leave(NativePath temp, @Nullable RuntimeException why, long now) {
    int toClose = FileOperations.ABSENT;
    synchronized (this) {
      lastNanos = now;
      if (failure == null) {
        failure = why;
      }
      boolean rests = inside == 1 && failure == null && !isWhole();
      if (rests && files.keptTemps.get() > files.opened.most) {
        toClose = takeFd();
      }
    }
    RuntimeException fault = null;
    if (toClose != FileOperations.ABSENT) {
      // A writer that enters meanwhile opens the file once more.
      try {
        files.operations.close(toClose, temp);
      } catch (FileException e) {
        fault = e;
      }
    }
    synchronized (this) {
      if (failure == null) {
        failure = fault;
      }
      inside--;
      ending = inside == 0 && (failure != null || isWhole());
      return ending;
    }
  }

  private boolean isWhole() {
    return written.cardinality() == crcs.length;
  }

  /**
   * Takes the block away from its writers when none is inside and nothing came for a time.
   *
   * @param why becomes its failure; null when it is stored all the same
   * @return whether the file is now the caller's alone, to be removed
   */
  synchronized boolean giveUp(long now, long timeoutNanos, @Nullable RuntimeException why) {
    boolean due = !ending && inside == 0 && now - lastNanos >= timeoutNanos;
    if (due) {
      failure = why;
      ending = true;
    }
    return due;
  }

  /** When the last writer left. */
  synchronized long lastNanos() {
    return lastNanos;
  }

  /** The checksums of the shards, for the writer that ends the block. */
  int[] crcs() {
    return crcs;
  }

  /** Whether there is a temporary file. */
  synchronized boolean isCreated() {
    return created;
  }

  /** Names the temporary file. */
  void nameTemp(NativePath path) {
    files.nameTemp(path, idHigh, idLow, tempNumber);
  }

  /** Hands the descriptor over to the writer that ends the block. */
  synchronized int takeFd() {
    int taken = fd;
    fd = FileOperations.ABSENT;
    if (taken != FileOperations.ABSENT) {
      files.keptTemps.decrementAndGet();
    }
    return taken;
  }

  /** What went wrong, or null. */
  synchronized @Nullable RuntimeException failure() {
    return failure;
  }

  /** The block is committed, or its file removed. */
  void ended() {
    ended.complete(null);
  }

  /** Waits until the block, which is ending, has ended. */
  void awaitEnd() {
    ended.join();
  }

  /** Waits until the block has ended, no longer than some time; returns whether it has. */
  boolean awaitEnd(long nanos) throws InterruptedException {
    try {
      ended.get(nanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException | ExecutionException _) {
      return false;
    }
    return true;
  }
}
