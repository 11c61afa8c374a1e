package ucm.store.posix;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.store.common.Errno;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;

/**
 * A block of which some shards are written to a temporary file and others are still to come.
 *
 * <p>Writers {@link #enter}, write their shards side by side, and {@link #leave}. The one who leaves
 * last, when all shards are there or one has failed, is told so; the file is then its alone, to commit
 * or to remove. What counts is how many shards are written, not which came last.
 *
 * <pre>
 *   OPEN --- all written, or a failure, or given up; and nobody inside --- ENDING --- ended --- ENDED
 * </pre>
 */
final class PartialBlock {

  private enum State {
    OPEN,
    ENDING,
    ENDED
  }

  final long idHigh;
  final long idLow;

  /** The task that brought its first shard. */
  final long firstTask;

  /** The next one in the same chain of the table, guarded by the table. */
  @Nullable PartialBlock next;

  private final long tempNumber;

  // Guarded by this.
  private final int[] crcs;
  private final boolean[] written;
  private int writtenCount;
  private int inside;
  private int fd = FileSeam.ABSENT;
  private boolean created;
  private State state = State.OPEN;
  private @Nullable RuntimeException failure;
  private long lastNanos;

  PartialBlock(long idHigh, long idLow, long firstTask, long tempNumber, int shards, long now) {
    this.idHigh = idHigh;
    this.idLow = idLow;
    this.firstTask = firstTask;
    this.tempNumber = tempNumber;
    this.crcs = new int[shards];
    this.written = new boolean[shards];
    this.lastNanos = now;
  }

  /** Whether a shard is there, so that writing it again would change nothing. */
  synchronized boolean has(int shard) {
    return written[shard];
  }

  /**
   * Opens the temporary file for one writer more.
   *
   * @param scratch gets the name of the file
   * @return its descriptor, or {@link FileSeam#ABSENT} when the block is ending
   * @throws FileException when it cannot be opened; the writer is inside all the same, and leaves
   */
  synchronized int enter(BlockFiles files, IoScratch scratch, OpenTemps openTemps) {
    if (state != State.OPEN || failure != null) {
      return FileSeam.ABSENT;
    }
    inside++;
    files.nameTemp(scratch.temp, idHigh, idLow, tempNumber);
    if (fd == FileSeam.ABSENT) {
      fd =
          created
              ? files.reopenTemp(scratch.temp)
              : files.createTemp(scratch.temp, scratch.folder, idHigh, idLow);
      if (fd < 0) {
        fd = FileSeam.ABSENT;
        throw new FileException("open", scratch.temp, Errno.ENOENT);
      }
      created = true;
      openTemps.opened();
    }
    return fd;
  }

  /** Marks shards as written; called inside. */
  synchronized void wrote(int shard, int crc) {
    crcs[shard] = crc;
    if (!written[shard]) {
      written[shard] = true;
      writtenCount++;
    }
  }

  /**
   * Ends one writer's part.
   *
   * @param scratch holds the name of the file
   * @param why what went wrong, or null
   * @return whether the file is now the caller's alone, to be ended
   */
  synchronized boolean leave(
      BlockFiles files,
      IoScratch scratch,
      OpenTemps openTemps,
      @Nullable RuntimeException why,
      long now) {
    inside--;
    lastNanos = now;
    if (failure == null) {
      failure = why;
    }
    if (inside > 0) {
      return false;
    }
    if (failure == null && writtenCount < written.length) {
      if (openTemps.tooMany()) {
        close(files, scratch, openTemps);
      }
      return endIf(failure != null);
    }
    return endIf(true);
  }

  private void close(BlockFiles files, IoScratch scratch, OpenTemps openTemps) {
    int toClose = takeFd(openTemps);
    try {
      files.seam.close(toClose, scratch.temp);
    } catch (FileException e) {
      failure = e;
    }
  }

  /**
   * Takes the block away from its writers when none is inside and nothing came for a time.
   *
   * @param why becomes its failure
   * @return whether the file is now the caller's alone, to be removed
   */
  synchronized boolean giveUp(long now, long timeoutNanos, RuntimeException why) {
    boolean due = state == State.OPEN && inside == 0 && now - lastNanos >= timeoutNanos;
    if (due) {
      failure = why;
    }
    return endIf(due);
  }

  private boolean endIf(boolean condition) {
    if (condition) {
      state = State.ENDING;
    }
    return condition;
  }

  /** When the last writer left. */
  synchronized long lastNanos() {
    return lastNanos;
  }

  /** The checksums of the shards, for the one who ends the block. */
  int[] crcs() {
    return crcs;
  }

  /** Whether there is a temporary file. */
  synchronized boolean isCreated() {
    return created;
  }

  /** Names the temporary file. */
  void nameTemp(BlockFiles files, IoScratch scratch) {
    files.nameTemp(scratch.temp, idHigh, idLow, tempNumber);
  }

  /** Hands the descriptor over to the one who ends the block. */
  synchronized int takeFd(OpenTemps openTemps) {
    int taken = fd;
    fd = FileSeam.ABSENT;
    if (taken != FileSeam.ABSENT) {
      openTemps.closed();
    }
    return taken;
  }

  /** What went wrong, or null. */
  synchronized @Nullable RuntimeException failure() {
    return failure;
  }

  /** The block is committed, or its file removed. */
  synchronized void ended() {
    state = State.ENDED;
    notifyAll();
  }

  /** Waits until the block, which is ending, has ended. */
  synchronized void awaitEnd() {
    boolean interrupted = false;
    while (state != State.ENDED) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Waits until the block has ended.
   *
   * @param deadlineNanos until when, as {@link System#nanoTime} counts
   * @return whether it has
   */
  synchronized boolean awaitEnd(long deadlineNanos) throws InterruptedException {
    while (state != State.ENDED) {
      long left = deadlineNanos - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }
}
