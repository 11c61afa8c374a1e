package ucm.platform.memory;

import java.nio.ByteBuffer;
import java.util.IdentityHashMap;
import java.util.zip.CRC32C;
import ucm.api.MemoryRegion;

/**
 * CRC32C over segments of memory regions, where they lie. Not thread-safe.
 *
 * <p>The JDK computes it with processor instructions, but only over a {@link ByteBuffer}. The views
 * of some regions are kept, so that a segment costs no allocation. A view reaches nearly 2
 * GiB; one begins at every GiB, so that half a GiB from any place lies whole in one of them.
 */
public final class MemoryCrc {

  private static final int MOST_REGIONS = 1024;
  private static final int WINDOW_SHIFT = 30;
  private static final long WINDOW = 1L << WINDOW_SHIFT;
  // What a ByteBuffer takes: the longest array of the JDK, although this one has no array.
  private static final long MAX_VIEW = Integer.MAX_VALUE - 8;

  private final CRC32C crc = new CRC32C();
  private final IdentityHashMap<MemoryRegion, ByteBuffer[]> views = new IdentityHashMap<>();

  /** Starts over. */
  public void reset() {
    crc.reset();
  }

  /** The checksum of all bytes since {@link #reset}. */
  public int value() {
    return (int) crc.getValue();
  }

  /**
   * Takes in bytes of host memory.
   *
   * @throws IllegalArgumentException when they do not lie within the region
   */
  public void update(MemoryRegion region, long offset, long length) {
    ByteBuffer[] windows = views(region);
    long at = offset;
    long end = offset + length;
    while (at < end) {
      ByteBuffer view = windows[(int) (at >>> WINDOW_SHIFT)];
      int from = (int) (at & (WINDOW - 1));
      int part = (int) Math.min(end - at, WINDOW / 2);
      view.limit(from + part).position(from);
      crc.update(view);
      view.clear();
      at += part;
    }
  }

  private ByteBuffer[] views(MemoryRegion region) {
    ByteBuffer[] known = views.get(region);
    if (known != null) {
      return known;
    }
    if (views.size() == MOST_REGIONS) {
      views.clear();
    }
    long size = region.byteSize();
    ByteBuffer[] made = new ByteBuffer[Math.toIntExact((size + WINDOW - 1) >>> WINDOW_SHIFT)];
    for (int i = 0; i < made.length; i++) {
      long start = i * WINDOW;
      long length = Math.min(size - start, MAX_VIEW);
      made[i] = region.segment().asSlice(start, length).asByteBuffer();
    }
    views.put(region, made);
    return made;
  }
}
