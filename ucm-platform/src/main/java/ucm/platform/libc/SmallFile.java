package ucm.platform.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/** Reads small files that lie in a directory which others can write to. */
public final class SmallFile {

  private SmallFile() {}

  /**
   * Reads a whole file.
   *
   * @param most bytes that such a file may have
   * @return null when there is none, when it is longer, or when it is something else: a link, which is
   *     not followed, a pipe, which is not waited for
   * @throws FileException when it cannot be read
   */
  public static byte @Nullable [] read(FileOperations files, NativePath path, int most) {
    long size = files.size(path);
    int fd = size < 0 || size > most ? FileOperations.ABSENT : files.openRead(path);
    if (fd < 0) {
      return null;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(Math.max(1, size));
      long read =
          VectorIo.readFully(files, fd, path, new IoVector().add(bytes.asSlice(0, size)), 0);
      return bytes.asSlice(0, read).toArray(ValueLayout.JAVA_BYTE);
    } finally {
      files.close(fd, path);
    }
  }
}
