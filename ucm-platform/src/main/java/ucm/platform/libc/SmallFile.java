package ucm.platform.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Reads and writes small files that lie in a directory which others can write to. */
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
    try {
      return read(files, fd, path, size);
    } finally {
      files.close(fd, path);
    }
  }

  /** Reads an open file from its start, so many bytes at the most. */
  public static byte[] read(FileOperations files, int fd, NativePath path, long size) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(Math.max(1, size)).asSlice(0, size);
      long read = VectorIo.readFully(files, fd, path, new IoVector().add(bytes), 0);
      return bytes.asSlice(0, read).toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /** Writes ASCII text into an open file. */
  public static void write(FileOperations files, int fd, NativePath path, String text, long at) {
    try (Arena arena = Arena.ofConfined()) {
      byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
      MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
      VectorIo.writeFully(files, fd, path, new IoVector().add(memory), at);
    }
  }
}
