package ucm.platform.memory;

import ucm.api.MemoryRegion;

/** Takes the CRC32C of bytes on their way, piece by piece. Not thread-safe. */
public interface MemoryDigest {

  /** Begins anew. */
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
