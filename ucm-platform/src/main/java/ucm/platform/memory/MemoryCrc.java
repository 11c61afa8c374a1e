package ucm.platform.memory;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;

/**
 * CRC32C over segments of memory regions, where they lie. Not thread-safe.
 *
 * <p>The JDK computes it with processor instructions, but only over a {@link ByteBuffer}. The views
 * of the regions seen last are kept, so that a segment costs no allocation. A view reaches nearly 2
 * GiB; one begins at every GiB, so that half a GiB from any place lies whole in one of them.
 */
public final class MemoryCrc {

  private static final int SLOTS = 1024;
  private static final int PROBES = 4;
  private static final int WINDOW_SHIFT = 30;
  private static final long WINDOW = 1L << WINDOW_SHIFT;
  // What a ByteBuffer takes: the longest array of the JDK, although this one has no array.
  private static final long MAX_VIEW = Integer.MAX_VALUE - 8;

  private final CRC32C crc = new CRC32C();
  private final @Nullable MemoryRegion[] regions = new MemoryRegion[SLOTS];
  private final ByteBuffer[][] windows = new ByteBuffer[SLOTS][];

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
    ByteBuffer[] views = views(region);
    long at = offset;
    long end = offset + length;
    while (at < end) {
      ByteBuffer view = views[(int) (at >>> WINDOW_SHIFT)];
      int from = (int) (at & (WINDOW - 1));
      int part = (int) Math.min(end - at, WINDOW / 2);
      view.limit(from + part).position(from);
      crc.update(view);
      view.clear();
      at += part;
    }
  }

  private ByteBuffer[] views(MemoryRegion region) {
    int home = System.identityHashCode(region) & (SLOTS - 1);
    for (int probe = 0; probe < PROBES; probe++) {
      int slot = (home + probe) & (SLOTS - 1);
      if (regions[slot] == region) {
        return windows[slot];
      }
      if (regions[slot] == null) {
        return remember(slot, region);
      }
    }
    return remember(home, region);
  }

  private ByteBuffer[] remember(int slot, MemoryRegion region) {
    long size = region.byteSize();
    ByteBuffer[] views = new ByteBuffer[Math.toIntExact((size + WINDOW - 1) >>> WINDOW_SHIFT)];
    for (int i = 0; i < views.length; i++) {
      long start = i * WINDOW;
      long length = Math.min(size - start, MAX_VIEW);
      views[i] = region.segment().asSlice(start, length).asByteBuffer();
    }
    regions[slot] = region;
    windows[slot] = views;
    return views;
  }
}
