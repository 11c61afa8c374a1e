package ucm.store.file.block;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.transfer.DumpFailures;
import ucm.store.file.transfer.ShardMover;
import ucm.store.file.transfer.TransferJob;

/**
 * Writes shards to files. A block whose shards come together is written in one go; one whose shards
 * come apart goes through {@link PartialWriter}. Either way it gets its footer and its name only when
 * it is whole, and a fault removes its temporary file.
 */
public final class BlockWriter implements ShardMover {

  private final BlockFiles files;
  private final PartialBlocks partials;
  private final PartialWriter partialWriter;
  private final DumpFailures failures;
  private final FileStoreMetrics metrics;
  private final ThreadLocal<IoScratch> scratches;
  private final LongSupplier clock;

  public BlockWriter(
      BlockFiles files,
      PartialBlocks partials,
      PartialWriter partialWriter,
      DumpFailures failures,
      FileStoreMetrics metrics,
      ThreadLocal<IoScratch> scratches,
      LongSupplier clock) {
    this.files = files;
    this.partials = partials;
    this.partialWriter = partialWriter;
    this.failures = failures;
    this.metrics = metrics;
    this.scratches = scratches;
    this.clock = clock;
  }

  @Override
  public void move(TransferJob job, int from, int to) {
    IoScratch scratch = scratches.get();
    try {
      boolean done;
      do {
        // Again only when an unfinished block ended while it was read.
        done = tryMove(job, from, to, scratch);
      } while (!done);
    } finally {
      scratch.clear();
    }
  }

  private boolean tryMove(TransferJob job, int from, int to, IoScratch scratch) {
    long idHigh = job.transfer.ids().high(from);
    long idLow = job.transfer.ids().low(from);
    PartialBlock partial = partials.find(idHigh, idLow);
    boolean isBegun = hasEndedAny(job, from, to);
    if (partial == null || isBegun) {
      if (files.isPresent(scratch.block, idHigh, idLow)) {
        metrics.presentBlocks().increment();
        job.endOk(from, to);
        return true;
      }
      if (isBegun) {
        throw lost(idHigh, idLow);
      }
      if (isWholeBlock(job.transfer, from, to)) {
        writeWhole(job, from, to, idHigh, idLow, scratch);
        return true;
      }
      if (partialWriter.refuse(job, from, to)) {
        return true;
      }
      partial = begin(idHigh, idLow, job.task.id());
      if (partial == null) {
        refuse(job, from, to);
        return true;
      }
    }
    return partialWriter.write(partial, job, from, to, scratch);
  }

  /** Whether a shard was found in an unfinished block, which has ended since: its memory is gone. */
  private static boolean hasEndedAny(TransferJob job, int from, int to) {
    for (int i = from; i < to; i++) {
      if (job.task.hasEnded(i)) {
        return true;
      }
    }
    return false;
  }

  private StoreException lost(long idHigh, long idLow) {
    return new StoreException(
        files.paths.store()
            + " did not store block "
            + BlockIds.hex(idHigh, idLow)
            + ": shards of it that other dumps had brought were lost with one that failed: dump it"
            + " again");
  }

  private @Nullable PartialBlock begin(long idHigh, long idLow, long task) {
    BlockLayout layout = files.format.layout();
    return partials.findOrAdd(
        new PartialBlock(
            idHigh, idLow, task, files.nextTemp(), layout.shardCount(), clock.getAsLong()));
  }

  private static boolean isWholeBlock(Transfer transfer, int from, int to) {
    if (to - from != transfer.layout().shardCount()) {
      return false;
    }
    for (int i = from; i < to; i++) {
      if (transfer.shardIndex(i) != i - from) {
        return false;
      }
    }
    return true;
  }

  private void writeWhole(
      TransferJob job, int from, int to, long idHigh, long idLow, IoScratch scratch) {
    NativePath temp = scratch.temp;
    files.nameTemp(temp, idHigh, idLow, files.nextTemp());
    int fd = files.createTemp(temp, scratch.folder, idHigh, idLow);
    try {
      scratch.cursor.begin(job.transfer, from, to);
      scratch.writes.writeBlock(fd, temp, scratch, files.format, idHigh, idLow);
      files.beginCommit(idHigh, idLow);
      try {
        files.sync(fd, temp);
        int toClose = fd;
        fd = FileOperations.ABSENT;
        files.operations.close(toClose, temp);
        files.publish(temp, scratch.block, idHigh, idLow);
      } finally {
        files.endCommit(idHigh, idLow);
      }
    } catch (RuntimeException e) {
      if (fd != FileOperations.ABSENT) {
        files.closeQuietly(fd, temp);
      }
      files.abandon(temp, idHigh, idLow);
      throw e;
    }
    metrics.wrote(to - from, files.format.layout());
    metrics.committedBlocks().increment();
    job.endOk(from, to);
  }

  private void refuse(TransferJob job, int from, int to) {
    StoreException why =
        new StoreException(
            files.paths.store()
                + " holds "
                + PartialBlocks.MAX_BLOCKS
                + " blocks of which not all shards have come, and takes no more of them: dump the"
                + " shards of a block closer together");
    notMoved(job, from, why);
    for (int i = from; i < to; i++) {
      job.task.end(i, ShardOutcome.REFUSED, why);
    }
  }

  @Override
  public void notMoved(TransferJob job, int from, RuntimeException cause) {
    if (failures.record(job.transfer.ids().high(from), job.transfer.ids().low(from), cause)) {
      metrics.failedBlocks().increment();
    }
  }
}
