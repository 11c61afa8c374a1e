package ucm.platform.io;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.IoVector;

/**
 * What the kernel gets for a vectored read or write with O_DIRECT: only whole pages of 4096 bytes,
 * aligned in the file and in memory.
 *
 * <p>Where the pages of the file lie in aligned memory of the caller they are moved from and to there, as
 * far as that goes on; else through a bounce buffer of this object, which is bounded and allocated when it
 * is first needed. A plan may cover less than the caller wants, never nothing; the caller goes on
 * after it as after a short call. Not thread-safe.
 */
final class AlignedVector {

  /** What everything is a multiple of. */
  static final int PAGE = 4096;

  private static final long BOUNCE_BYTES = 132L * PAGE;

  private final IoVector pages = new IoVector();
  private @Nullable MemorySegment bounce;
  private long offset;
  private int skip;
  private boolean isBounced;

  /** The memory of the pages. */
  IoVector pages() {
    return pages;
  }

  /** Where in the file the pages start. */
  long offset() {
    return offset;
  }

  /** Whether bytes must be written in another way, since they do not begin with a whole page. */
  static boolean isEdge(long at, long length) {
    return at % PAGE != 0 || length < PAGE;
  }

  /** Plans a read of pages that hold bytes wanted. */
  void planRead(IoVector into, long at) {
    if (planDirect(into, at)) {
      return;
    }
    long length = Math.min(skip + into.byteSize(), BOUNCE_BYTES);
    pages.clear().add(bounce().asSlice(0, Math.ceilDiv(length, PAGE) * PAGE));
  }

  /** Plans a write of whole pages at the front; there must be one, see {@link #isEdge}. */
  void planWrite(IoVector from, long at) {
    if (planDirect(from, at)) {
      return;
    }
    long length = Math.min(from.byteSize() / PAGE * PAGE, BOUNCE_BYTES);
    from.copyTo(0, bounce(), 0, length);
    pages.clear().add(bounce().asSlice(0, length));
  }

  private boolean planDirect(IoVector of, long at) {
    skip = (int) (at % PAGE);
    offset = at - skip;
    long direct = skip == 0 ? alignedBytes(of) : 0;
    isBounced = direct == 0;
    if (!isBounced) {
      pages.setHead(of, direct);
    }
    return !isBounced;
  }

  /** Bytes at the front that are whole pages. */
  private static long alignedBytes(IoVector of) {
    long aligned = 0;
    for (int entry = 0; entry < of.size() && of.address(entry) % PAGE == 0; entry++) {
      long whole = of.length(entry) / PAGE * PAGE;
      aligned += whole;
      if (whole < of.length(entry)) {
        break;
      }
    }
    return aligned;
  }

  /**
   * Copies the bytes that came through the bounce buffer to where they belong.
   *
   * @param into the vector that the read was planned for, unchanged since
   * @param got bytes the kernel has read
   * @return how many bytes of {@code into} are there now
   */
  long readDone(IoVector into, long got) {
    long there = Math.clamp(got - skip, 0, into.byteSize());
    if (isBounced) {
      into.copyFrom(0, bounce(), skip, there);
    }
    return there;
  }

  private MemorySegment bounce() {
    MemorySegment known = bounce;
    if (known == null) {
      known = Arena.ofAuto().allocate(BOUNCE_BYTES, PAGE);
      bounce = known;
    }
    return known;
  }
}
