package ucm.store.file.block;

import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreMetrics;

/**
 * Writes shards to files. A block whose shards come together is written in one go; one whose shards
 * come apart goes through {@link PartialWriter}. Either way it gets its footer and its name only when
 * it is whole, and a fault removes its temporary file. Thread-safe.
 */
public record BlockWriter(
    BlockFiles files, PartialWriter partials, FileStoreMetrics metrics, ThreadLocal<ShardIo> ios)
    implements FileTask.Mover {

  @Override
  public void move(FileTask task, int from, int to) {
    ShardIo io = ios.get();
    io.idHigh = task.transfer().ids().high(from);
    io.idLow = task.transfer().ids().low(from);
    try {
      while (!tryMove(task, from, to, io)) {
        // Again only when an unfinished block ended while it was read.
      }
    } finally {
      io.clear();
    }
  }

  private boolean tryMove(FileTask task, int from, int to, ShardIo io) {
    @Nullable PartialBlock partial = partials.find(io.idHigh, io.idLow);
    // A shard was found in an unfinished block, which has ended since: its memory is gone.
    boolean isBegun = IntStream.range(from, to).anyMatch(task::hasEnded);
    if (partial == null || isBegun) {
      if (files.isPresent(io.block, io.idHigh, io.idLow)) {
        metrics.presentBlocks.increment();
        task.endOk(from, to);
        return true;
      }
      if (isBegun) {
        throw new StoreException(
            ("%s did not store block %s: shards of it that other dumps had brought were lost with"
                    + " one that failed: dump it again")
                .formatted(files.paths.store(), BlockIds.hex(io.idHigh, io.idLow)));
      }
      if (isWholeBlock(task.transfer(), from, to)) {
        writeWhole(task, from, to, io);
        return true;
      }
      if (partials.refuse(task, from, to)) {
        return true;
      }
      partial = partials.findOrBegin(io.idHigh, io.idLow, task.id());
      if (partial == null) {
        task.endRest(from, to, ShardOutcome.REFUSED, tooManyPartials());
        return true;
      }
    }
    return partials.write(partial, task, from, to, io);
  }

  private static boolean isWholeBlock(Transfer transfer, int from, int to) {
    return to - from == transfer.layout().shardCount()
        && IntStream.range(from, to).allMatch(i -> transfer.shardIndex(i) == i - from);
  }

  private void writeWhole(FileTask task, int from, int to, ShardIo io) {
    NativePath temp = io.temp;
    files.nameTemp(temp, io.idHigh, io.idLow, files.nextTemp());
    int fd = files.createTemp(temp, io.folder, io.idHigh, io.idLow);
    try {
      io.begin(task.transfer(), from, to, ShardIo.Footer.NOT);
      io.write(fd, temp, true);
      int whole = fd;
      fd = FileOperations.ABSENT;
      files.commit(whole, temp, io.block, io.idHigh, io.idLow);
    } catch (RuntimeException e) {
      files.abandon(fd, temp, io.idHigh, io.idLow);
      throw e;
    }
    metrics.wrote(to - from, files.format.layout());
    metrics.committedBlocks.increment();
    task.endOk(from, to);
  }

  private StoreException tooManyPartials() {
    return new StoreException(
        ("%s holds %d blocks of which not all shards have come, and takes no more of them: dump the"
                + " shards of a block closer together")
            .formatted(files.paths.store(), PartialWriter.MAX_BLOCKS));
  }
}
