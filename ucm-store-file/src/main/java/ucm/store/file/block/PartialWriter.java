package ucm.store.file.block;

import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.space.SpaceRefusedException;
import ucm.store.file.transfer.DumpFailures;
import ucm.store.file.transfer.TransferJob;

/** Writes blocks whose shards come apart: in several tasks, in any order, by several threads. */
public final class PartialWriter {

  private final BlockFiles files;
  private final PartialBlocks partials;
  private final OpenTemps openTemps;
  private final DumpFailures failures;
  private final FileStoreMetrics metrics;
  private final LongSupplier clock;
  private final DirectoryHealth health;
  private final DeferredCleanup cleanup;
  private final RefusedBlocks refused = new RefusedBlocks();

  public PartialWriter(
      BlockFiles files,
      PartialBlocks partials,
      OpenTemps openTemps,
      DumpFailures failures,
      FileStoreMetrics metrics,
      LongSupplier clock,
      DirectoryHealth health,
      DeferredCleanup cleanup) {
    this.files = files;
    this.partials = partials;
    this.openTemps = openTemps;
    this.failures = failures;
    this.metrics = metrics;
    this.clock = clock;
    this.health = health;
    this.cleanup = cleanup;
  }

  /**
   * Writes those shards that are not there yet, and ends them.
   *
   * @return false when the block ended meanwhile, and the rest must be tried again
   */
  boolean write(PartialBlock partial, TransferJob job, int from, int to, IoScratch scratch) {
    partial.broughtBy(job.task.id());
    int start = from;
    while (start < to) {
      if (isDone(partial, job, start)) {
        job.endOk(start, start + 1);
        start++;
        continue;
      }
      int end = start + 1;
      while (end < to && !isDone(partial, job, end)) {
        end++;
      }
      if (!writeRun(partial, job, start, end, scratch)) {
        partial.awaitEnd();
        return false;
      }
      start = end;
    }
    return true;
  }

  private static boolean isDone(PartialBlock partial, TransferJob job, int shard) {
    return job.task.hasEnded(shard) || partial.has(job.transfer.shardIndex(shard));
  }

  private boolean writeRun(
      PartialBlock partial, TransferJob job, int from, int to, IoScratch scratch) {
    RuntimeException failure = null;
    try {
      int fd = partial.enter(files, scratch, openTemps);
      if (fd == FileOperations.ABSENT) {
        return false;
      }
      scratch.cursor.begin(job.transfer, from, to);
      scratch.writes.writeShards(fd, scratch.temp, scratch);
      for (int i = from; i < to; i++) {
        partial.wrote(job.transfer.shardIndex(i), scratch.crcs[i - from]);
      }
      metrics.wrote(to - from, files.format.layout());
    } catch (RuntimeException e) {
      failure = e;
      // Before the block ends, so that its other shards find it.
      noteRefusal(job, from, to, e);
    }
    if (partial.leave(files, scratch, openTemps, failure, clock.getAsLong())) {
      end(partial, scratch);
    }
    RuntimeException fault = partial.failure();
    if (fault != null) {
      if (failure == null) {
        noteRefusal(job, from, to, fault);
      }
      throw fault;
    }
    job.endOk(from, to);
    return true;
  }

  private void noteRefusal(TransferJob job, int from, int to, RuntimeException why) {
    if (why instanceof SpaceRefusedException noRoom) {
      refused.add(job.transfer, from, to, noRoom);
    }
  }

  /** Refuses shards of a block of which others found no room; false when they are to be written. */
  boolean refuse(TransferJob job, int from, int to) {
    SpaceRefusedException why = refused.refuse(job.transfer, from, to);
    if (why == null) {
      return false;
    }
    for (int i = from; i < to; i++) {
      job.task.end(i, ShardOutcome.REFUSED, why);
    }
    return true;
  }

  /**
   * Commits a block that is whole, or removes one that has failed. The caller owns it alone.
   *
   * @throws RuntimeException what made it fail
   */
  private void end(PartialBlock partial, IoScratch scratch) {
    int fd = partial.takeFd(openTemps);
    files.beginCommit(partial.idHigh, partial.idLow);
    try {
      RuntimeException failure = partial.failure();
      if (failure != null) {
        throw failure;
      }
      partial.nameTemp(files, scratch.temp);
      scratch.writes.writeFooter(
          fd, scratch.temp, scratch, files.format, partial.idHigh, partial.idLow, partial.crcs());
      files.sync(fd, scratch.temp);
      int toClose = fd;
      fd = FileOperations.ABSENT;
      files.operations.close(toClose, scratch.temp);
      files.publish(scratch.temp, scratch.block, partial.idHigh, partial.idLow);
      metrics.committedBlocks().increment();
    } catch (RuntimeException e) {
      abandon(partial, fd, scratch.temp);
      // Before the block is called ended, so that a flush that waits for it reports this.
      if (failures.record(partial.idHigh, partial.idLow, e)) {
        metrics.failedBlocks().increment();
      }
      throw e;
    } finally {
      files.endCommit(partial.idHigh, partial.idLow);
      partials.remove(partial);
      partial.ended();
    }
  }

  /**
   * Gives up the blocks for which nothing came for a time. Makes no system call: a thread of its own
   * removes their files.
   *
   * @return nanoseconds until the next one may be due, {@link Long#MAX_VALUE} when there is none
   */
  public long giveUpDue(long now, long timeoutNanos) {
    long next = Long.MAX_VALUE;
    for (PartialBlock partial : partials.all()) {
      long left = timeoutNanos - (now - partial.lastNanos());
      if (left > 0) {
        next = Math.min(next, left);
      } else if (health.isDown(partial.idHigh, partial.idLow)) {
        // Its file could not be removed now; it waits until the directory works again.
        next = Math.min(next, timeoutNanos);
      } else if (!endIfStored(partial) && !cleanup.isFull() && giveUp(partial, now, timeoutNanos)) {
        cleanup.add(() -> removeFile(partial));
      } else {
        next = Math.min(next, timeoutNanos);
      }
    }
    return next;
  }

  /**
   * Ends a block of which no shard is being written when it is known that another writer has stored it
   * meanwhile: a caller that was told so dumps no more of it. Makes no system call, like {@link #giveUpDue}.
   *
   * @return whether the block has ended by this
   */
  public boolean endIfStored(PartialBlock partial) {
    if (!files.isKnown(partial.idHigh, partial.idLow)
        || cleanup.isFull()
        || !partial.giveUp(partial.lastNanos(), 0, null)) {
      return false;
    }
    metrics.presentBlocks().increment();
    partials.remove(partial);
    partial.ended();
    cleanup.add(() -> removeFile(partial));
    return true;
  }

  /** Gives up all blocks and removes their files, at close. */
  public void giveUpAll() {
    for (PartialBlock partial : partials.all()) {
      if (!endIfStored(partial) && giveUp(partial, partial.lastNanos(), 0)) {
        removeFile(partial);
      }
    }
  }

  private boolean giveUp(PartialBlock partial, long now, long timeoutNanos) {
    StoreException why =
        new StoreException(
            "block "
                + BlockIds.hex(partial.idHigh, partial.idLow)
                + " was given up: its last shards were not dumped within timeout_ms of the ones"
                + " before, or before the store was closed");
    if (!partial.giveUp(now, timeoutNanos, why)) {
      return false;
    }
    metrics.givenUpBlocks().increment();
    if (failures.record(partial.idHigh, partial.idLow, why)) {
      metrics.failedBlocks().increment();
    }
    partials.remove(partial);
    partial.ended();
    return true;
  }

  /** Removes the file of a block that was given up, unless its directory is down; does not throw. */
  private void removeFile(PartialBlock partial) {
    int fd = partial.takeFd(openTemps);
    if (health.isDown(partial.idHigh, partial.idLow) && partial.isCreated()) {
      files.leave(fd, partial.idHigh, partial.idLow);
    } else {
      abandon(partial, fd, new NativePath());
    }
  }

  private void abandon(PartialBlock partial, int fd, NativePath temp) {
    if (partial.isCreated()) {
      partial.nameTemp(files, temp);
      if (fd != FileOperations.ABSENT) {
        files.closeQuietly(fd, temp);
      }
      files.abandon(temp, partial.idHigh, partial.idLow);
    }
  }
}
