package ucm.api;

import org.jspecify.annotations.Nullable;

/**
 * A {@link Store} implements this, too, when I/O is fastest in memory of its own (a registered segment,
 * the iov of a user-space file system), so that bytes need not be copied twice.
 */
public interface MemoryProvider {

  /**
   * Offers memory to the upper stage. Called by that stage while it opens, at most once.
   *
   * @param byteSize how much the upper stage wants
   * @return a region of at least that size, page-aligned, owned by this store and alive until it is
   *     closed; or null when this store has none to offer, and the upper stage brings its own
   */
  @Nullable MemoryRegion offerMemory(long byteSize);
}
