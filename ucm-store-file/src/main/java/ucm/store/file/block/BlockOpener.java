package ucm.store.file.block;

import org.jspecify.annotations.Nullable;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.store.file.format.BlockFooter;

/**
 * Opens the files of blocks that are loaded in parts: checks size and footer with the first part, and
 * finds out with each further one whether it is still the same file, with its bytes and its name as
 * they were. Thread-safe.
 */
final class BlockOpener {

  private final BlockFiles files;
  private final BlockFooter format;
  private final OpenBlocks opened;

  BlockOpener(BlockFiles files, OpenBlocks opened) {
    this.files = files;
    this.format = files.format;
    this.opened = opened;
  }

  /**
   * Opens the file of the block of {@code scratch}, or takes it as it is open. The caller ends with
   * {@link OpenBlocks#release}.
   *
   * @return null when there is none, or when it is damaged: then {@link IoScratch#fault} says how
   */
  @Nullable OpenBlock open(IoScratch scratch) {
    OpenBlock known = opened.find(scratch.idHigh, scratch.idLow);
    if (known != null && isSame(known, scratch)) {
      return known;
    }
    int fd = files.openRead(scratch.block, scratch.idHigh, scratch.idLow);
    if (fd < 0) {
      return null;
    }
    OpenBlock block = null;
    try {
      block = check(fd, scratch);
    } finally {
      scratch.queue.drain();
      if (block == null) {
        files.closeQuietly(fd, scratch.block);
      }
    }
    if (block != null) {
      opened.keep(block);
    }
    return block;
  }

  private boolean isSame(OpenBlock block, IoScratch scratch) {
    boolean same = false;
    try {
      long version = files.operations.version(block.fd, scratch.block);
      same = version == block.version && version != FileOperations.ABSENT;
      return same;
    } finally {
      if (!same) {
        opened.drop(block.idHigh, block.idLow);
        opened.release(block, 0);
      }
    }
  }

  private @Nullable OpenBlock check(int fd, IoScratch scratch) {
    long version = files.operations.version(fd, scratch.block);
    long size = files.operations.size(fd, scratch.block);
    boolean hasFooter = size == format.fileSize();
    if (!hasFooter && files.operations.size(scratch.block) < 0) {
      // No file, for example a folder: not ours, and not to be touched.
      return null;
    }
    if (!hasFooter && !files.isBare(size)) {
      scratch.fault = BlockReader.wrongSize(format, size);
      return null;
    }
    files.setDirect(fd, scratch.block);
    String fault = hasFooter ? readFooter(fd, scratch) : findSmallerBlock(fd, scratch);
    if (fault != null || !(hasFooter || files.acceptsUnverified())) {
      scratch.fault = fault;
      return null;
    }
    int[] crcs = hasFooter ? BlockReader.storedCrcs(format, scratch).clone() : null;
    int shards = format.layout().shardCount();
    return new OpenBlock(scratch.idHigh, scratch.idLow, fd, version, crcs, shards);
  }

  private @Nullable String readFooter(int fd, IoScratch scratch) {
    long moved = readAt(format.offset(), fd, scratch);
    return moved == format.byteSize()
        ? format.fault(scratch.footer, scratch.idHigh, scratch.idLow)
        : BlockReader.shortFile(format.offset() + moved);
  }

  /** A file without a footer may be a whole file of a smaller block. */
  @Nullable String findSmallerBlock(int fd, IoScratch scratch) {
    long tail = format.layout().blockSize() - format.byteSize();
    if (tail < 0) {
      return null;
    }
    readAt(tail, fd, scratch);
    return BlockFooter.isFooterEnd(scratch.footer) ? "it is a whole file of a smaller block" : null;
  }

  private long readAt(long offset, int fd, IoScratch scratch) {
    IoVector vector = scratch.vector().clear().add(scratch.footer.segment());
    scratch.queue.read(fd, scratch.block, vector, offset);
    return scratch.queue.await();
  }
}
