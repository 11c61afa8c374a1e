package ucm.api;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A stretch of memory that transfers point into: host memory, or memory of a device.
 *
 * <p>Engines register theirs once (one region per KV-cache tensor, say) and name places in it by
 * offset, so that a transfer of thousands of tensors carries numbers and no objects. A region owns
 * nothing: the owner of the memory keeps it alive while a task uses it. Immutable; compared by
 * identity.
 */
public final class MemoryRegion {

  private final @Nullable MemorySegment segment;
  private final long address;
  private final long byteSize;
  private final int deviceId;

  private MemoryRegion(@Nullable MemorySegment segment, long address, long byteSize, int deviceId) {
    this.segment = segment;
    this.address = address;
    this.byteSize = byteSize;
    this.deviceId = deviceId;
  }

  /**
   * Host memory.
   *
   * @param segment native memory, accessible from every thread (of a shared, automatic or global
   *     arena)
   * @throws IllegalArgumentException for a heap segment or one confined to a thread
   */
  public static MemoryRegion host(MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(
          "stores read and write native memory; found a heap segment: allocate it from an Arena");
    }
    if (!segment.isAccessibleBy(new Thread())) {
      throw new IllegalArgumentException(
          "stores use several threads; found a segment confined to one: allocate it from a shared"
              + " Arena");
    }
    return new MemoryRegion(segment, segment.address(), segment.byteSize(), -1);
  }

  /**
   * Memory of a device, by its raw address.
   *
   * @param deviceId the ordinal of the device, 0 or more
   * @param address where the region starts, in the device's address space
   * @param byteSize its size in bytes
   */
  public static MemoryRegion device(int deviceId, long address, long byteSize) {
    if (deviceId < 0 || byteSize < 0) {
      throw new IllegalArgumentException(
          String.format(
              "a device region has a device id and a size of 0 or more; found "
                  + "device %s, %s bytes",
              deviceId, byteSize));
    }
    return new MemoryRegion(null, address, byteSize, deviceId);
  }

  /** Whether the CPU can read and write it. */
  public boolean isHost() {
    return segment != null;
  }

  /** The ordinal of the device, or -1 for host memory. */
  public int deviceId() {
    return deviceId;
  }

  /** Where it starts: an address of this process, or of the device. */
  public long address() {
    return address;
  }

  /** Its size in bytes. */
  public long byteSize() {
    return byteSize;
  }

  /**
   * The host memory itself.
   *
   * @throws IllegalStateException for memory of a device
   */
  public MemorySegment segment() {
    if (segment == null) {
      throw new IllegalStateException(this + " is not host memory");
    }
    return segment;
  }

  @Override
  public String toString() {
    return String.format(
        "%s memory of %s bytes at 0x%s",
        isHost() ? "host" : "device " + deviceId, byteSize, Long.toHexString(address));
  }
}
