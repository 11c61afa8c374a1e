package ucm.platform.io;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.IoVector;

/**
 * What the kernel gets for a vectored read or write with O_DIRECT: only whole pages of 4096 bytes,
 * aligned in the file and in memory.
 *
 * <p>Where the pages of the file lie in aligned memory of the caller they are moved from and to there;
 * only the others go through a bounce buffer of this object, which is bounded and allocated when it is
 * first needed. A plan may cover less than the caller wants, never nothing; the caller goes on after
 * it as after a short call. Not thread-safe.
 */
final class AlignedVector {

  /** What everything is a multiple of. */
  static final int PAGE = 4096;

  private static final int BOUNCE_PAGES = 132;

  private final IoVector pages = new IoVector();
  private @Nullable MemorySegment bounce;
  private long offset;
  private int skip;

  // Where the walk through the caller's vector is.
  private int entry;
  private long inEntry;

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

  /** Plans a read of all pages that hold some of the bytes wanted. */
  void planRead(IoVector into, long at) {
    plan(into, at, false);
  }

  /** Plans a write of the whole pages at the front; there must be one, see {@link #isEdge}. */
  void planWrite(IoVector from, long at) {
    plan(from, at, true);
  }

  private void plan(IoVector of, long at, boolean isWrite) {
    pages.clear();
    skip = (int) (at % PAGE);
    offset = at - skip;
    long end = isWrite ? of.byteSize() / PAGE * PAGE : of.byteSize();
    long done = 0;
    long bounced = 0;
    rewind();
    while (done < end && pages.size() < IoVector.MAX_ENTRIES) {
      long run = alignedRun(of, done, end);
      if (run > 0) {
        pages.add(of.address(entry) + inEntry, run);
        forward(of, run);
        done += run;
        continue;
      }
      if (bounced == BOUNCE_PAGES * (long) PAGE) {
        break;
      }
      int from = done == 0 ? skip : 0;
      long length = Math.min(PAGE - from, end - done);
      if (isWrite) {
        copy(of, bounced, length, true);
      } else {
        forward(of, length);
      }
      pages.add(bounce().address() + bounced, PAGE);
      bounced += PAGE;
      done += length;
    }
  }

  /**
   * Copies the bytes that came through the bounce buffer to where they belong.
   *
   * @param into the vector that the read was planned for, unchanged since
   * @param got bytes the kernel has read
   * @return how many bytes of {@code into} are there now
   */
  long readDone(IoVector into, long got) {
    long end = into.byteSize();
    long there = Math.clamp(got - skip, 0, end);
    long done = 0;
    long bounced = 0;
    rewind();
    while (done < there) {
      long run = alignedRun(into, done, end);
      if (run > 0) {
        forward(into, run);
        done += run;
        continue;
      }
      int from = done == 0 ? skip : 0;
      long length = Math.min(PAGE - from, there - done);
      copy(into, bounced + from, length, false);
      bounced += PAGE;
      done += length;
    }
    return there;
  }

  /** Bytes from here on that need no copy. */
  private long alignedRun(IoVector of, long done, long end) {
    if ((done == 0 && skip > 0) || (of.address(entry) + inEntry) % PAGE != 0) {
      return 0;
    }
    return Math.min(of.length(entry) - inEntry, end - done) / PAGE * PAGE;
  }

  private void copy(IoVector of, long bounced, long length, boolean toBounce) {
    long done = 0;
    while (done < length) {
      long part = Math.min(length - done, of.length(entry) - inEntry);
      of.copy(entry, inEntry, bounce(), bounced + done, part, toBounce);
      forward(of, part);
      done += part;
    }
  }

  private void rewind() {
    entry = 0;
    inEntry = 0;
  }

  private void forward(IoVector of, long bytes) {
    long left = bytes;
    while (left > 0) {
      long part = Math.min(left, of.length(entry) - inEntry);
      inEntry += part;
      left -= part;
      if (inEntry == of.length(entry)) {
        entry++;
        inEntry = 0;
      }
    }
  }

  private MemorySegment bounce() {
    MemorySegment known = bounce;
    if (known == null) {
      known = Arena.ofAuto().allocate(BOUNCE_PAGES * (long) PAGE, PAGE);
      bounce = known;
    }
    return known;
  }
}
