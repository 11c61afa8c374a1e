package ucm.platform.memory;

import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.OwnLibrary;

/**
 * Copies of memory with streaming stores, which do not read into the processor's cache what they
 * overwrite: {@code src/main/c/streaming.c} in {@link OwnLibrary}. Without it, and on processors that lack
 * the instructions, copies are those of the JDK.
 *
 * <p>The JDK has such stores only for copies of more than 2.5 MiB, and none that takes a checksum on the
 * way.
 *
 * <p>The memory must stay allocated until a copy has returned, and must not overlap. Thread-safe.
 */
public final class StreamingCopy {

  private static final Logger LOG = LoggerFactory.getLogger(StreamingCopy.class);

  private static final boolean USED;
  private static final String STATE;

  static {
    String missing = whatIsMissing();
    USED = missing.isEmpty();
    STATE = USED ? "with streaming stores (AVX-512)" : "plain: " + missing;
    LOG.debug("Host memory is copied {}", STATE);
  }

  private StreamingCopy() {}

  /** Whether the stores are used: where not, {@link #scatterCrc} must not be called. */
  public static boolean isUsed() {
    return USED;
  }

  /** How memory is copied, and why, for messages. */
  public static String state() {
    return STATE;
  }

  /**
   * Copies the bytes of all segments into one.
   *
   * @param at where they go in {@code to}, in bytes
   * @throws IndexOutOfBoundsException when they do not fit there
   */
  public static void gather(IoVector segments, MemorySegment to, long at) {
    if (!USED) {
      segments.copyTo(0, to, at, segments.byteSize());
      return;
    }
    check(to, at, segments);
    try {
      gather(to.address() + at, segments.address(), segments.size());
    } finally {
      Reference.reachabilityFence(segments);
      Reference.reachabilityFence(to);
    }
  }

  /**
   * Fills all segments with the bytes of one.
   *
   * @param at where in {@code from} they begin, in bytes
   * @throws IndexOutOfBoundsException when there are fewer
   */
  public static void scatter(IoVector segments, MemorySegment from, long at) {
    if (!USED) {
      segments.copyFrom(0, from, at, segments.byteSize());
      return;
    }
    check(from, at, segments);
    try {
      scatter(segments.address(), segments.size(), from.address() + at);
    } finally {
      Reference.reachabilityFence(segments);
      Reference.reachabilityFence(from);
    }
  }

  /**
   * The same, and takes the CRC32C of the bytes.
   *
   * @param crc that of the bytes before, 0 for none
   * @return that of all of them
   * @throws IllegalStateException where streaming stores are not used
   */
  static int scatterCrc(IoVector segments, MemorySegment from, long at, int crc) {
    if (!USED) {
      throw new IllegalStateException(
          "no checksum is taken on the way of copies that are " + STATE);
    }
    check(from, at, segments);
    try {
      return scatterCrc(segments.address(), segments.size(), from.address() + at, crc);
    } finally {
      Reference.reachabilityFence(segments);
      Reference.reachabilityFence(from);
    }
  }

  private static void check(MemorySegment one, long at, IoVector segments) {
    Objects.checkFromIndexSize(at, segments.byteSize(), one.byteSize());
    if (!one.isNative() || !one.scope().isAlive()) {
      throw new IllegalStateException("native memory that is there is copied; found " + one);
    }
  }

  private static String whatIsMissing() {
    if (!OwnLibrary.IS_LOADED) {
      return OwnLibrary.MISSING;
    }
    return usable() == 0 ? "this processor lacks AVX-512 F or VPCLMULQDQ" : "";
  }

  private static native int usable();

  private static native void gather(long to, long segments, long count);

  private static native void scatter(long segments, long count, long from);

  private static native int scatterCrc(long segments, long count, long from, int crc);
}
