package ucm.store.file.block;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;
import ucm.api.Transfer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.store.file.block.StepReads.Footer;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.transfer.ShardMover;
import ucm.store.file.transfer.TransferJob;

/**
 * Reads shards from files, and checks them: the size of the file and its footer before a shard is
 * called good, and its checksum while its bytes are still in the processor's cache.
 *
 * <p>Of a whole block the footer is read first, so that each shard can be ended as soon as it is read;
 * only when everything fits into one step, or is one shard, it is read along with the last bytes. Where
 * a block is loaded in parts, layer by layer, its file stays open between them: see {@link BlockOpener}.
 */
public final class BlockReader implements ShardMover {

  // With verify: sample, one group of shards in this many is checked.
  private static final int SAMPLE = 16;

  private final BlockFiles files;
  private final BlockFooter format;
  private final OpenBlocks opened;
  private final BlockOpener opener;
  private final FileStoreConfig.Verify verify;
  private final Quarantine quarantine;
  private final FileStoreMetrics metrics;
  private final ThreadLocal<IoScratch> scratches;

  public BlockReader(
      BlockFiles files,
      OpenBlocks opened,
      FileStoreConfig.Verify verify,
      Quarantine quarantine,
      FileStoreMetrics metrics,
      ThreadLocal<IoScratch> scratches) {
    this.files = files;
    this.format = files.format;
    this.opened = opened;
    this.opener = new BlockOpener(files, opened);
    this.verify = verify;
    this.quarantine = quarantine;
    this.metrics = metrics;
    this.scratches = scratches;
  }

  @Override
  public void move(TransferJob job, int from, int to) {
    IoScratch scratch = scratches.get();
    long idHigh = job.transfer.ids().high(from);
    long idLow = job.transfer.ids().low(from);
    scratch.idHigh = idHigh;
    scratch.idLow = idLow;
    scratch.removals = files.removals(idHigh, idLow);
    String fault = null;
    try {
      files.paths.block(scratch.block, idHigh, idLow);
      fault =
          to - from < format.layout().shardCount()
              ? readPart(job, from, to, scratch)
              : readAll(job, from, to, scratch);
    } catch (FileException e) {
      if (e.errno() != Errno.ESTALE && e.errno() != Errno.ENOENT) {
        throw e;
      }
      // Removed after we opened it: the file server has forgotten it, or what io_direct left to be
      // read through the page cache cannot be opened by its name any more.
    } finally {
      scratch.clear();
    }
    if (fault != null) {
      quarantine.take(idHigh, idLow, fault);
      files.lost(scratch.block, idHigh, idLow);
      endRest(job, from, to, ShardOutcome.CORRUPT);
    } else if (!job.task.hasEnded(to - 1)) {
      files.lost(scratch.block, idHigh, idLow);
      endRest(job, from, to, ShardOutcome.MISSING);
    }
  }

  /**
   * Reads what is there of a whole block and ends the shards that are good. Those left are damaged when
   * a fault is returned, else missing.
   */
  private @Nullable String readAll(TransferJob job, int from, int to, IoScratch scratch) {
    int fd = files.openRead(scratch.block, scratch.idHigh, scratch.idLow);
    if (fd < 0) {
      return null;
    }
    try {
      return read(fd, job, from, to, scratch);
    } finally {
      scratch.queue.drain();
      files.closeQuietly(fd, scratch.block);
    }
  }

  /** The same for a part of a block. */
  private @Nullable String readPart(TransferJob job, int from, int to, IoScratch scratch) {
    scratch.fault = null;
    OpenBlock block = opener.open(scratch);
    if (block == null) {
      return scratch.fault;
    }
    int done = 0;
    try {
      if (block.crcs == null) {
        metrics.unverifiedShards().add(to - from);
      }
      scratch.cursor.begin(job.transfer, from, to);
      scratch.reads.begin();
      String fault = readShards(block.fd, job, from, scratch, Footer.NOT, block.crcs);
      done = to - from;
      return fault;
    } finally {
      scratch.queue.drain();
      if (done == 0) {
        opened.drop(block.idHigh, block.idLow);
      }
      opened.release(block, done);
    }
  }

  private @Nullable String read(int fd, TransferJob job, int from, int to, IoScratch scratch) {
    long size = files.operations.size(fd, scratch.block);
    if (size == format.fileSize()) {
      files.setDirect(fd, scratch.block);
      return readChecked(fd, job, from, to, scratch);
    }
    if (files.operations.size(scratch.block) < 0) {
      // No file, for example a folder: not ours, and not to be touched.
      return null;
    }
    if (files.isBare(size)) {
      files.setDirect(fd, scratch.block);
      return readUnchecked(fd, job, from, to, scratch);
    }
    return wrongSize(format, size);
  }

  static String wrongSize(BlockFooter format, long size) {
    return "its size is "
        + size
        + " bytes; a block has "
        + format.fileSize()
        + ", or "
        + format.layout().blockSize()
        + " without a footer";
  }

  static String shortFile(long bytes) {
    return "it ended after " + bytes + " bytes while it was read";
  }

  private @Nullable String readChecked(
      int fd, TransferJob job, int from, int to, IoScratch scratch) {
    scratch.cursor.begin(job.transfer, from, to);
    scratch.reads.begin();
    if (!isFooterNext(job.transfer, from, to, scratch)) {
      String fault = readFooter(fd, scratch);
      return fault != null
          ? fault
          : readShards(fd, job, from, scratch, Footer.FIRST, storedCrcs(format, scratch));
    }
    boolean check = isToBeChecked(scratch);
    IoStep step;
    do {
      step = scratch.reads.next(fd, scratch, format, Footer.LAST);
      String fault = fault(step);
      if (fault == null && !scratch.reads.hasNext(scratch, Footer.LAST)) {
        fault = format.fault(scratch.footer, scratch.idHigh, scratch.idLow);
      }
      if (fault != null) {
        return fault;
      }
      if (check) {
        step.cursor.digest(scratch.crc, scratch.crcs, from);
      }
    } while (scratch.reads.hasNext(scratch, Footer.LAST));
    return endGood(job, from, to, from, scratch, check ? storedCrcs(format, scratch) : null);
  }

  /** Whether the footer is best read along with the last bytes of the shards. */
  private boolean isFooterNext(Transfer transfer, int from, int to, IoScratch scratch) {
    boolean atEnd = transfer.shardIndex(to - 1) == format.layout().shardCount() - 1;
    boolean oneStep = (to - from) * format.layout().shardSize() <= scratch.reads.stepBytes();
    return atEnd && (to - from == 1 || (oneStep && isUnbroken(transfer, from, to)));
  }

  private static boolean isUnbroken(Transfer transfer, int from, int to) {
    for (int i = from + 1; i < to; i++) {
      if (transfer.shardIndex(i) != transfer.shardIndex(i - 1) + 1) {
        return false;
      }
    }
    return transfer.pieceCount() * (to - from) < ShardCursor.STEP_ENTRIES;
  }

  private @Nullable String readUnchecked(
      int fd, TransferJob job, int from, int to, IoScratch scratch) {
    String fault = opener.findSmallerBlock(fd, scratch);
    if (fault != null || !files.acceptsUnverified()) {
      return fault;
    }
    metrics.unverifiedShards().add(to - from);
    scratch.cursor.begin(job.transfer, from, to);
    scratch.reads.begin();
    return readShards(fd, job, from, scratch, Footer.NOT, null);
  }

  private @Nullable String readShards(
      int fd,
      TransferJob job,
      int from,
      IoScratch scratch,
      Footer footer,
      int @Nullable [] stored) {
    int[] expected = stored != null && isToBeChecked(scratch) ? stored : null;
    String firstFault = null;
    while (scratch.reads.hasNext(scratch, footer)) {
      IoStep step = scratch.reads.next(fd, scratch, format, footer);
      String fault = fault(step);
      if (fault != null) {
        return fault;
      }
      if (expected != null) {
        step.cursor.digest(scratch.crc, scratch.crcs, from);
      }
      ShardCursor cursor = step.cursor;
      fault = endGood(job, cursor.firstShard(), cursor.firstOpenShard(), from, scratch, expected);
      firstFault = firstFault == null ? fault : firstFault;
    }
    return firstFault;
  }

  /** Ends the shards whose checksum is right, and says what is wrong with the first other one. */
  private @Nullable String endGood(
      TransferJob job, int from, int to, int base, IoScratch scratch, int @Nullable [] expected) {
    String firstFault = null;
    for (int i = from; i < to; i++) {
      int shard = job.transfer.shardIndex(i);
      int computed = scratch.crcs[i - base];
      if (expected == null || computed == expected[shard]) {
        metrics.loaded(format.layout());
        if (i == from) {
          // Before the task ends, so that a caller that waited for it finds the block known.
          files.found(scratch.block, scratch.idHigh, scratch.idLow, scratch.removals);
        }
        job.task.ok(i);
      } else if (firstFault == null) {
        firstFault =
            BlockFooter.differs(
                "shard " + shard + " is damaged: its CRC32C", expected[shard], computed);
      }
    }
    return firstFault;
  }

  private @Nullable String readFooter(int fd, IoScratch scratch) {
    String fault = fault(scratch.reads.next(fd, scratch, format, Footer.FIRST));
    return fault != null ? fault : format.fault(scratch.footer, scratch.idHigh, scratch.idLow);
  }

  private static @Nullable String fault(IoStep step) {
    return step.moved == step.wanted ? null : shortFile(step.offset + step.moved);
  }

  /** The checksums in the footer. */
  static int[] storedCrcs(BlockFooter format, IoScratch scratch) {
    int[] stored = scratch.storedCrcs;
    for (int i = 0; i < stored.length; i++) {
      stored[i] = format.shardCrc(scratch.footer, i);
    }
    return stored;
  }

  private boolean isToBeChecked(IoScratch scratch) {
    return switch (verify) {
      case FULL -> true;
      case SAMPLE -> scratch.groups++ % SAMPLE == 0;
      case OFF -> false;
    };
  }

  private void endRest(TransferJob job, int from, int to, ShardOutcome outcome) {
    for (int i = from; i < to; i++) {
      if (!job.task.hasEnded(i)) {
        if (outcome == ShardOutcome.MISSING) {
          metrics.missingShards().increment();
        }
        job.task.end(i, outcome, null);
      }
    }
  }

  @Override
  public void notMoved(TransferJob job, int from, RuntimeException cause) {
    // The task says it all.
  }
}
