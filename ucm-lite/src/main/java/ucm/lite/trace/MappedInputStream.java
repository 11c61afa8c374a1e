package ucm.lite.trace;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.util.Objects;

/**
 * The bytes of a file through a mapping of the whole of it into memory. The end is where the file
 * ended when it was opened: what is appended meanwhile is not read.
 *
 * <p>A file may be cut off while it is read. Touching a page after the new end is then a fault,
 * which the JVM turns into an {@link InternalError}, and the rest of the last page reads as zeros
 * without one. Both become an {@link IOException}, because after each copy the file is asked for its
 * size. The JVM may throw the error only when the next system call returns, which that question is.
 *
 * <p>For the thread that opened it.
 */
final class MappedInputStream extends InputStream {
  private final FileChannel channel;
  private final Arena arena;
  private final MemorySegment bytes;
  private long position;

  private MappedInputStream(FileChannel channel, Arena arena, MemorySegment bytes) {
    this.channel = channel;
    this.arena = arena;
    this.bytes = bytes;
  }

  /**
   * Maps a file.
   *
   * @param channel closed with the stream, if there is one
   * @throws IOException when it cannot be mapped, for want of address space for example
   */
  static MappedInputStream of(FileChannel channel) throws IOException {
    Arena arena = Arena.ofConfined();
    try {
      return new MappedInputStream(
          channel, arena, channel.map(MapMode.READ_ONLY, 0, channel.size(), arena));
    } catch (IOException | RuntimeException e) {
      arena.close();
      throw e;
    }
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
  }

  @Override
  public int read(byte[] target, int offset, int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, target.length);
    int now = (int) Math.min(length, bytes.byteSize() - position);
    if (now == 0) {
      return length == 0 ? 0 : -1;
    }
    try {
      MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, position, target, offset, now);
      checkNotCutOff(position + now);
    } catch (InternalError e) {
      checkNotCutOff(bytes.byteSize());
      throw new IOException(
          "its device gives no bytes from " + position + " to " + (position + now), e);
    }
    position += now;
    return now;
  }

  private void checkNotCutOff(long end) throws IOException {
    long there = channel.size();
    if (there < end) {
      throw new IOException(
          String.format(
              "it was cut off while it was read, from %s to %s bytes; read it again when nothing"
                  + " writes it",
              bytes.byteSize(), there));
    }
  }

  @Override
  public void close() throws IOException {
    if (channel.isOpen()) {
      arena.close();
      channel.close();
    }
  }
}
