package ucm.platform.io;

import org.jspecify.annotations.Nullable;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.VectorIo;

/** The engine psync: each request is a vectored system call on the thread of the worker. */
public final class PsyncQueue implements IoQueue {

  private final FileOperations files;
  private final @Nullable DirectIo direct;
  private long moved;

  /**
   * A queue of one worker.
   *
   * @param isDirect whether its files were given to {@link FileOperations#setDirect}
   */
  public PsyncQueue(FileOperations files, boolean isDirect) {
    this.files = files;
    this.direct = isDirect ? new DirectIo(files) : null;
  }

  @Override
  public int depth() {
    return 1;
  }

  /**
   * Through the page cache, what a call copies should still be in the processor's own cache when its
   * checksum is taken, beside the pages it was copied from: half of a second-level cache of 1 MiB.
   */
  @Override
  public int readBytes() {
    return direct == null ? 256 << 10 : IoQueue.super.readBytes();
  }

  /**
   * As for reads: a checksum is taken of each step just before the call copies it, while both still find it in
   * the processor's own cache.
   */
  @Override
  public int writeBytes() {
    return direct == null ? 512 << 10 : IoQueue.super.writeBytes();
  }

  @Override
  public void read(int fd, NativePath path, IoVector into, long offset) {
    moved =
        direct == null
            ? VectorIo.readFully(files, fd, path, into, offset)
            : direct.readFully(fd, path, into, offset);
  }

  @Override
  public void write(int fd, NativePath path, IoVector from, long offset) {
    moved = from.byteSize();
    if (direct == null) {
      VectorIo.writeFully(files, fd, path, from, offset);
    } else {
      direct.writeFully(fd, path, from, offset);
    }
  }

  @Override
  public long await() {
    return moved;
  }

  /** Does nothing: nothing is under way between two calls. */
  @Override
  public void drain() {}

  /** Does nothing: the queue holds nothing of the kernel's. */
  @Override
  public void close() {}
}
