package ucm.store.file.block;

import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.space.SpaceRefusedException;

/**
 * A block that is being written to a temporary file: in one go, or shard by shard. Whatever goes wrong while it
 * holds a descriptor, an {@link OutOfMemoryError} too, the file goes and its room is given back.
 *
 * <p>Writers of shards {@link #enter}, write side by side, and {@link #leave}. The writer that leaves last, when
 * all shards are there or one has failed, is told so; the file is then its alone, to {@link #commit}. What counts is
 * how many shards are written, not which came last. A draft that found no room stays its own note why: its shards that
 * come later are {@linkplain #refuse refused} like the first. No system call is made under the lock of this, so that
 * questions about the block never wait for the file system. Thread-safe.
 */
final class BlockDraft {

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
  private final BitSet refused = new BitSet();
  private int inside;
  private int fd = FileOperations.ABSENT;
  private boolean created;
  private long firstTask;
  private boolean ending;
  private @Nullable RuntimeException failure;
  private long lastNanos;

  // Completed when the block is committed, or its file removed.
  private final CompletableFuture<Void> ended = new CompletableFuture<>();

  BlockDraft(BlockFiles files, long idHigh, long idLow, long firstTask, long now) {
    this.files = files;
    this.id = BlockIds.of(idHigh, idLow);
    this.idHigh = idHigh;
    this.idLow = idLow;
    this.firstTask = firstTask;
    this.tempNumber = files.nextTemp();
    this.crcs = new int[files.format.layout().shardCount()];
    this.lastNanos = now;
  }

  /** Writes all shards of a block, which come together, with its footer, and commits it. */
  static void writeWhole(BlockFiles files, Transfer transfer, int from, int to, ShardIo io) {
    files.nameTemp(io.temp, io.idHigh, io.idLow, files.nextTemp());
    io.begin(transfer, from, to, ShardIo.Footer.NOT);
    int fd = files.createTemp(io.temp, io.folder, io.idHigh, io.idLow);
    finish(files, fd, null, io);
  }

  /** Commits the draft whose shards are all written; its caller owns the file alone. */
  void commit(ShardIo io) {
    nameTemp(io.temp);
    finish(files, takeFd(), crcs, io);
  }

  /** Writes what is missing of a file, all shards unless their checksums are known, and gives it its name. */
  private static void finish(BlockFiles files, int fd, int @Nullable [] crcs, ShardIo io) {
    int open = fd;
    try {
      if (crcs == null) {
        io.write(fd, io.temp, true);
      } else {
        io.writeFooter(fd, io.temp, crcs);
      }
      open = FileOperations.ABSENT;
      files.commit(fd, io.temp, io.block, io.idHigh, io.idLow);
    } catch (Throwable e) {
      files.abandon(open, io.temp, io.idHigh, io.idLow, false);
      throw e;
    }
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
   * Ends one writer's part. Where too many files are kept open, the file of a block that rests is closed, and
   * opened again for the next shard.
   *
   * @return whether the file is now the caller's alone: to be committed, or removed when it has failed
   */
  boolean leave(NativePath temp, long now) {
    int toClose = FileOperations.ABSENT;
    synchronized (this) {
      lastNanos = now;
      boolean rests = inside == 1 && failure == null && !isWhole();
      if (rests && files.keptTemps.get() > files.opened.most) {
        toClose = takeFd();
      }
    }
    if (toClose != FileOperations.ABSENT) {
      // A writer that enters meanwhile opens the file once more.
      try {
        files.operations.close(toClose, temp);
      } catch (Throwable e) {
        fail(e);
      }
    }
    synchronized (this) {
      inside--;
      ending = inside == 0 && (failure != null || isWhole());
      return ending;
    }
  }

  /** Says what went wrong; the first cause is kept. Called inside. */
  synchronized void fail(Throwable why) {
    if (failure == null) {
      failure =
          why instanceof RuntimeException known
              ? known
              : new StoreException("writing block " + id.hex(0) + " broke: " + why, why);
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

  /**
   * Removes the file of a draft that its caller owns alone, open or not, and gives its room back; nothing when
   * there is none. Does not throw.
   *
   * @param isDown whether its directory is down: then the file is left to the next start
   */
  void discard(boolean isDown) {
    int open = takeFd();
    if (isCreated()) {
      NativePath temp = new NativePath();
      nameTemp(temp);
      files.abandon(open, temp, idHigh, idLow, isDown);
    }
  }

  /** When the last writer left. */
  synchronized long lastNanos() {
    return lastNanos;
  }

  private synchronized boolean isCreated() {
    return created;
  }

  private void nameTemp(NativePath path) {
    files.nameTemp(path, idHigh, idLow, tempNumber);
  }

  /** Hands the descriptor over to the writer that ends the block. */
  private synchronized int takeFd() {
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

  /** Whether there was no room for it. */
  synchronized boolean foundNoRoom() {
    return failure instanceof SpaceRefusedException;
  }

  /**
   * Notes shards that came to a draft that found no room, unless one of them was noted before: then they are of
   * another dump. Returns whether it did.
   */
  synchronized boolean refuse(Transfer transfer, int from, int to) {
    for (int i = from; i < to; i++) {
      if (refused.get(transfer.shardIndex(i))) {
        return false;
      }
    }
    for (int i = from; i < to; i++) {
      refused.set(transfer.shardIndex(i));
    }
    return true;
  }

  /**
   * Whether shards have still to come to a draft that found no room: a file begun with them could never become
   * whole, and would hold room that a whole block needs.
   */
  synchronized boolean awaitsShards() {
    return refused.cardinality() < crcs.length;
  }

  /** The block is committed, or its file removed. */
  void ended() {
    ended.complete(null);
  }

  /** Whether {@link #ended} was called. */
  boolean hasEnded() {
    return ended.isDone();
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
