package ucm.platform.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.api.MemoryRegion;
import ucm.platform.libc.IoVector;

/**
 * Memory through which a worker reads what the kernel copies from its page cache: so little that it stays
 * in the processor's cache, from where {@link StreamingCopy} copies it on, and its checksum on the
 * way. Fewer bytes pass between processor and memory than when the kernel copies there, and a
 * checksum reads them again. Not thread-safe.
 */
public final class ReadBuffer implements MemoryDigest {

  private static final int PAGE = 4096;

  private final MemorySegment memory;
  // Where the bytes from `at` on belong.
  private final IoVector segments = new IoVector();
  private long at;
  private int crc;

  /**
   * Allocates the memory, which is freed with this object.
   *
   * @param bytes most bytes of one read
   */
  public ReadBuffer(int bytes) {
    memory = Arena.ofAuto().allocate(bytes, PAGE);
  }

  /**
   * Makes a read that was to fill the memory of {@code vector} fill this buffer. What was read goes on to
   * that memory by {@link #update}, which wants its segments in order, and {@link #flush}.
   *
   * @throws IndexOutOfBoundsException when the vector has more bytes than the buffer
   */
  public void replace(IoVector vector) {
    vector.replace(memory);
    segments.clear();
    at = 0;
  }

  @Override
  public void reset() {
    crc = 0;
  }

  /** Takes the next bytes that were read into the checksum, and to where they belong. */
  @Override
  public void update(MemoryRegion region, long offset, long length) {
    segments.addToWrite(region, offset, length);
  }

  /** Copies all that {@link #update} was given. */
  public void flush() {
    if (segments.size() > 0) {
      crc = StreamingCopy.scatterCrc(segments, memory, at, crc);
      at += segments.byteSize();
      segments.clear();
    }
  }

  @Override
  public int value() {
    flush();
    return crc;
  }
}
