package ucm.store.file.block;

import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Transfer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.store.file.block.OpenBlocks.OpenBlock;
import ucm.store.file.block.ShardIo.Footer;
import ucm.store.file.block.ShardIo.Step;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.format.BlockFooter;

/**
 * Reads shards from files, and checks them: the size of the file and its footer before a shard is
 * called good, and its checksum while its bytes are still in the processor's cache.
 *
 * <p>Of a whole block the footer is read first, so that each shard can be ended as soon as it is read;
 * only when everything fits into one step, or is one shard, it is read along with the last bytes. Where
 * a block is loaded in parts, layer by layer, its file stays open between them: size and footer are checked
 * with the first part, and with each further one, whether it is still the same file, with its bytes and its
 * name as they were. Thread-safe.
 */
public record BlockReader(BlockFiles files, FileStoreConfig.Verify verify, ThreadLocal<ShardIo> ios)
    implements FileTask.Mover {

  // With verify: sample, one group of shards in this many is checked.
  private static final int SAMPLE = 16;

  /** The file is damaged; its message says how. */
  private static final class Damaged extends Exception {

    private static final long serialVersionUID = 1L;

    Damaged(String how) {
      super(how, null, false, false);
    }
  }

  @Override
  public void move(FileTask task, int from, int to) {
    ShardIo io = ios.get();
    long idHigh = task.transfer().ids().high(from);
    long idLow = task.transfer().ids().low(from);
    io.idHigh = idHigh;
    io.idLow = idLow;
    io.stamp = files.index.stamp(idHigh, idLow);
    String fault = null;
    try {
      files.paths.block(io.block, idHigh, idLow);
      if (to - from < files.format.layout().shardCount()) {
        readPart(task, from, to, io);
      } else {
        readAll(task, from, to, io);
      }
    } catch (Damaged e) {
      fault = String.valueOf(e.getMessage());
    } catch (FileException e) {
      if (e.errno() != Errno.ESTALE && e.errno() != Errno.ENOENT) {
        throw e;
      }
      // Removed after we opened it: the file server has forgotten it, or what io_direct left to be
      // read through the page cache cannot be opened by its name any more.
    } finally {
      io.clear();
    }
    if (fault != null) {
      new Quarantine(files.operations, files.paths, files.metrics).take(idHigh, idLow, fault);
      files.lost(io.block, idHigh, idLow);
      task.endRest(from, to, ShardOutcome.CORRUPT, null);
    } else if (!task.hasEnded(to - 1)) {
      files.lost(io.block, idHigh, idLow);
      for (int i = from; i < to; i++) {
        if (!task.hasEnded(i)) {
          files.metrics.missingShards.increment();
          task.end(i, ShardOutcome.MISSING, null);
        }
      }
    }
  }

  /**
   * Reads what is there of a whole block and ends the shards that are good. Those left are missing.
   *
   * @throws Damaged when those left are damaged
   */
  private void readAll(FileTask task, int from, int to, ShardIo io) throws Damaged {
    int fd = files.openRead(io.block, io.idHigh, io.idLow);
    if (fd < 0) {
      return;
    }
    try {
      long size = sizeOfBlock(fd, io);
      if (size < 0) {
        return;
      }
      Footer where = isFooterLast(task.transfer(), from, to, io) ? Footer.LAST : Footer.FIRST;
      if (size != files.format.fileSize()) {
        files.metrics.unverifiedShards.add(to - from);
        where = Footer.NOT;
      }
      readShards(fd, task, from, to, io, where, null);
    } finally {
      io.drain();
      files.closeQuietly(fd, io.block);
    }
  }

  /** The same for a part of a block. */
  private void readPart(FileTask task, int from, int to, ShardIo io) throws Damaged {
    OpenBlock block = open(io);
    if (block == null) {
      return;
    }
    int done = 0;
    try {
      if (block.crcs == null) {
        files.metrics.unverifiedShards.add(to - from);
      }
      readShards(block.fd, task, from, to, io, Footer.NOT, block.crcs);
      done = to - from;
    } finally {
      io.drain();
      if (done == 0) {
        files.opened.drop(io.idHigh, io.idLow);
      }
      files.opened.release(block, done);
    }
  }

  /**
   * Opens the file of a block that is loaded in parts, or takes it as it is open. The caller ends with
   * {@link OpenBlocks#release}.
   *
   * @return null when there is none that is served
   */
  private @Nullable OpenBlock open(ShardIo io) throws Damaged {
    OpenBlock known = files.opened.find(io.idHigh, io.idLow);
    if (known != null && isSame(known, io)) {
      return known;
    }
    int fd = files.openRead(io.block, io.idHigh, io.idLow);
    if (fd < 0) {
      return null;
    }
    OpenBlock block = null;
    try {
      block = check(fd, io);
    } finally {
      io.drain();
      if (block == null) {
        files.closeQuietly(fd, io.block);
      }
    }
    if (block != null) {
      files.opened.keep(block);
    }
    return block;
  }

  private boolean isSame(OpenBlock block, ShardIo io) {
    boolean same = false;
    try {
      long version = files.operations.version(block.fd, io.block);
      same = version == block.version && version != FileOperations.ABSENT;
      return same;
    } finally {
      if (!same) {
        files.opened.drop(io.idHigh, io.idLow);
        files.opened.release(block, 0);
      }
    }
  }

  private @Nullable OpenBlock check(int fd, ShardIo io) throws Damaged {
    long version = files.operations.version(fd, io.block);
    long size = sizeOfBlock(fd, io);
    if (size < 0) {
      return null;
    }
    int shards = files.format.layout().shardCount();
    int[] crcs = null;
    if (size == files.format.fileSize()) {
      readFooter(fd, io);
      crcs = files.format.shardCrcs(io.footer, new int[shards]);
    }
    return new OpenBlock(BlockIds.of(io.idHigh, io.idLow), fd, version, crcs, shards);
  }

  /** The size of an open file, prepared to be read; negative when it is not served. */
  private long sizeOfBlock(int fd, ShardIo io) throws Damaged {
    long size = files.operations.size(fd, io.block);
    if (size == files.format.fileSize()) {
      files.setDirect(fd, io.block);
      return size;
    }
    if (files.operations.size(io.block) < 0) {
      // No file, for example a folder: not ours, and not to be touched.
      return FileOperations.OTHER_TYPE;
    }
    if (!files.isBare(size)) {
      throw new Damaged(
          "its size is %d bytes; a block has %d, or %d without a footer"
              .formatted(size, files.format.fileSize(), files.format.layout().blockSize()));
    }
    files.setDirect(fd, io.block);
    long tail = size - files.format.byteSize();
    if (tail >= 0) {
      io.readFooterAt(tail, fd);
      if (BlockFooter.isFooterEnd(io.footer)) {
        throw new Damaged("it is a whole file of a smaller block");
      }
    }
    return files.acceptsUnverified ? size : FileOperations.OTHER_TYPE;
  }

  private void readFooter(int fd, ShardIo io) throws Damaged {
    long moved = io.readFooterAt(files.format.offset(), fd);
    requireWhole(files.format.offset(), moved, files.format.byteSize());
    requireFooter(io);
  }

  private void requireFooter(ShardIo io) throws Damaged {
    String fault = files.format.fault(io.footer, io.idHigh, io.idLow);
    if (fault != null) {
      throw new Damaged(fault);
    }
  }

  private static void requireWhole(long offset, long moved, long wanted) throws Damaged {
    if (moved != wanted) {
      throw new Damaged("it ended after " + (offset + moved) + " bytes while it was read");
    }
  }

  /** Whether the footer is best read along with the last bytes of the shards. */
  private boolean isFooterLast(Transfer transfer, int from, int to, ShardIo io) {
    boolean atEnd = transfer.shardIndex(to - 1) == files.format.layout().shardCount() - 1;
    boolean oneStep = (to - from) * files.format.layout().shardSize() <= io.stepBytes();
    return atEnd && (to - from == 1 || (oneStep && isUnbroken(transfer, from, to)));
  }

  private static boolean isUnbroken(Transfer transfer, int from, int to) {
    return transfer.pieceCount() * (to - from) < ShardIo.STEP_ENTRIES
        && IntStream.range(from + 1, to)
            .allMatch(i -> transfer.shardIndex(i) == transfer.shardIndex(i - 1) + 1);
  }

  /**
   * Reads shards and ends those that are good, as soon as they are read and the footer is.
   *
   * @param where where the footer is read, if it is
   * @param crcs the checksums of the block's shards, if they are known before
   */
  private void readShards(
      int fd, FileTask task, int from, int to, ShardIo io, Footer where, int @Nullable [] crcs)
      throws Damaged {
    io.begin(task.transfer(), from, to, where);
    boolean check = (where != Footer.NOT || crcs != null) && isToBeChecked(io);
    int @Nullable [] stored = crcs;
    String firstFault = null;
    while (io.hasNext()) {
      Step step = io.read(fd);
      requireWhole(step.offset, step.moved, step.wanted);
      if (step.hasFooter) {
        requireFooter(io);
        stored = files.format.shardCrcs(io.footer, io.storedCrcs);
      }
      int begun = io.passed();
      io.pass(step, check);
      String fault = endGood(task, begun, io.passed(), from, io, check ? stored : null);
      firstFault = firstFault == null ? fault : firstFault;
    }
    if (firstFault != null) {
      throw new Damaged(firstFault);
    }
  }

  /** Ends the shards whose checksum is right, and says what is wrong with the first other one. */
  private @Nullable String endGood(
      FileTask task, int from, int to, int base, ShardIo io, int @Nullable [] expected) {
    String firstFault = null;
    for (int i = from; i < to; i++) {
      int shard = task.transfer().shardIndex(i);
      int computed = io.crcs[i - base];
      if (expected == null || computed == expected[shard]) {
        files.metrics.loaded(files.format.layout());
        if (i == from) {
          // Before the task ends, so that a caller that waited for it finds the block known.
          files.loaded(io.block, io.idHigh, io.idLow, io.stamp);
        }
        task.ok(i);
      } else if (firstFault == null) {
        firstFault =
            BlockFooter.differs(
                "shard " + shard + " is damaged: its CRC32C", expected[shard], computed);
      }
    }
    return firstFault;
  }

  private boolean isToBeChecked(ShardIo io) {
    return switch (verify) {
      case FULL -> true;
      case SAMPLE -> io.groups++ % SAMPLE == 0;
      case OFF -> false;
    };
  }
}
