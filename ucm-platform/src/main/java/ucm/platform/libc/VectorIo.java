package ucm.platform.libc;

/**
 * Whole vectored reads and writes: goes on where a call fell short, and counts every byte. Beside {@link
 * FileOperations}, so that those who stand before these, as tests do, see each call.
 */
public final class VectorIo {

  private VectorIo() {}

  /**
   * Reads until the vector is full or the file ends.
   *
   * @param into where to; what is left of it afterwards was not read
   * @return how many bytes were read; fewer than asked only at the end of the file
   * @throws FileException when a read fails
   */
  public static long readFully(
      FileOperations files, int fd, NativePath path, IoVector into, long offset) {
    long done = 0;
    while (into.byteSize() > 0) {
      long bytes = files.readAt(fd, path, into, offset + done);
      if (bytes == 0) {
        break;
      }
      into.advance(bytes);
      done += bytes;
    }
    return done;
  }

  /**
   * Writes the vector until nothing is left of it.
   *
   * @throws FileException when a write fails, or writes nothing at all
   */
  public static void writeFully(
      FileOperations files, int fd, NativePath path, IoVector from, long offset) {
    long done = 0;
    while (from.byteSize() > 0) {
      long bytes = files.writeAt(fd, path, from, offset + done);
      if (bytes == 0) {
        // No system call may do this; going on would be a loop without end.
        throw new FileException("pwritev wrote nothing to", path, Errno.EIO);
      }
      from.advance(bytes);
      done += bytes;
    }
  }
}
