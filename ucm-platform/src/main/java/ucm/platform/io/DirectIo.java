package ucm.platform.io;

import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.VectorIo;

/**
 * Whole reads and writes of files that are open with O_DIRECT, of any offset, length and memory; the
 * counterpart of {@link VectorIo}. Not thread-safe.
 *
 * <p>A page of which a write covers a part only, because a shard begins or ends there, is written
 * through the page cache with a descriptor of its own: another writer may have the other part, and
 * reading, changing and writing back the page would lose one of both. The kernel keeps the two ways
 * coherent, and no page is ever written both ways at once.
 */
final class DirectIo {

  private final FileOperations files;
  private final AlignedVector aligned = new AlignedVector();
  private final IoVector edge = new IoVector();

  DirectIo(FileOperations files) {
    this.files = files;
  }

  /** See {@link VectorIo#readFully}. */
  long readFully(int fd, NativePath path, IoVector into, long offset) {
    long done = 0;
    while (into.byteSize() > 0) {
      aligned.planRead(into, offset + done);
      long got = files.readAt(fd, path, aligned.pages(), aligned.offset());
      long bytes = aligned.readDone(into, got);
      if (bytes == 0) {
        // Either the file ends here, or the call fell short within a page.
        return got == 0 ? done : done + readThroughCache(path, into, offset + done);
      }
      into.advance(bytes);
      done += bytes;
    }
    return done;
  }

  private long readThroughCache(NativePath path, IoVector into, long offset) {
    int fd = files.openRead(path);
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    try {
      return VectorIo.readFully(files, fd, path, into, offset);
    } finally {
      files.close(fd, path);
    }
  }

  /** See {@link VectorIo#writeFully}. */
  void writeFully(int fd, NativePath path, IoVector from, long offset) {
    long done = 0;
    while (from.byteSize() > 0) {
      long at = offset + done;
      if (AlignedVector.isEdge(at, from.byteSize())) {
        done += writeEdge(path, from, at);
        continue;
      }
      aligned.planWrite(from, at);
      long bytes = files.writeAt(fd, path, aligned.pages(), at);
      if (bytes == 0) {
        throw new FileException("pwritev wrote nothing to", path, Errno.EIO);
      }
      from.advance(bytes);
      done += bytes;
    }
  }

  /**
   * Writes the part of a page at the front of a vector, and drops it from there.
   *
   * @return how many bytes were written
   */
  long writeEdge(NativePath path, IoVector from, long at) {
    long length = Math.min(from.byteSize(), AlignedVector.PAGE - at % AlignedVector.PAGE);
    edge.setHead(from, length);
    int fd = files.openWrite(path);
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    try {
      VectorIo.writeFully(files, fd, path, edge, at);
    } finally {
      files.close(fd, path);
    }
    from.advance(length);
    return length;
  }
}
