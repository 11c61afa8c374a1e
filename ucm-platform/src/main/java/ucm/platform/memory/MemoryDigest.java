package ucm.platform.memory;

import ucm.api.MemoryRegion;

/** Takes the CRC32C of bytes on their way, segment by segment. Not thread-safe. */
public interface MemoryDigest {

  /** Starts over. */
  void reset();

  /**
   * Takes in bytes of host memory.
   *
   * @throws IndexOutOfBoundsException when they do not lie within the region
   */
  void update(MemoryRegion region, long offset, long length);

  /** The checksum of all bytes since {@link #reset}. */
  int value();
}
