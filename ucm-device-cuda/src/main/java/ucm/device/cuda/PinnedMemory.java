package ucm.device.cuda;

import jcuda.Pointer;
import jcuda.driver.JCudaDriver;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.device.DeviceException;

/**
 * Host memory that is pinned part by part: a call for hundreds of gigabytes would be silent for minutes.
 * Its calls are made with the device's context current, by one thread at a time.
 */
final class PinnedMemory {

  private static final Logger LOG = LoggerFactory.getLogger(PinnedMemory.class);
  private static final double GIB = 1L << 30;

  private final CudaDevice device;
  private final MemoryRegion host;
  private final long partBytes;
  private long pinned;

  /**
   * @param partBytes what a call pins, but for the last one
   */
  PinnedMemory(CudaDevice device, MemoryRegion host, long partBytes) {
    this.device = device;
    this.host = host;
    this.partBytes = partBytes;
  }

  /** Pins all parts, or none. */
  void pin() {
    try {
      while (pinned < host.byteSize()) {
        long bytes = Math.min(partBytes, host.byteSize() - pinned);
        device.check(
            JCudaDriver.cuMemHostRegister(
                pointer(pinned), bytes, JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE),
            "cuMemHostRegister of " + bytes + " bytes");
        pinned += bytes;
        if (partBytes < host.byteSize()) {
          LOG.info(
              "{}: pinned {} of {} GiB of host memory",
              device,
              Math.round(pinned / GIB),
              Math.round(host.byteSize() / GIB));
        }
      }
    } catch (DeviceException e) {
      try {
        unpin();
      } catch (DeviceException second) {
        e.addSuppressed(second);
      }
      throw e;
    }
  }

  /** Unpins what is pinned. */
  void unpin() {
    for (long at = 0; at < pinned; at += partBytes) {
      device.check(JCudaDriver.cuMemHostUnregister(pointer(at)), "cuMemHostUnregister");
    }
    pinned = 0;
  }

  private Pointer pointer(long offset) {
    Pointer pointer = new Pointer();
    Handles.set(pointer, host.address() + offset);
    return pointer;
  }
}
