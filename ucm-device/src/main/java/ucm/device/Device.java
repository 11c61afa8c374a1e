package ucm.device;

import ucm.api.MemoryRegion;

/**
 * A device that is ready for copies. Thread-safe. None of its methods changes what the calling thread
 * is set to in the driver, so that an engine's own thread may call them.
 */
public interface Device extends AutoCloseable {

  /** What it is. */
  DeviceInfo info();

  /**
   * Pins host memory, which the device then reads and writes by itself. Blocks while the system finds the
   * pages, which takes about a second for some gigabytes; large memory is pinned in parts, with a line in
   * the log after each. The memory must be alive until {@link #free} ends it.
   *
   * @param unit a copy stays within a multiple of so many bytes of the region and the next: a multiple of
   *     the system's page, or the size of the region
   * @throws DeviceException when the driver refuses; nothing is pinned then
   */
  void pin(MemoryRegion host, long unit);

  /**
   * A queue of copies. The calling thread owns it: it alone may use it and closes it, and does nothing
   * else with a device.
   *
   * @param marks how many places in the queue can be remembered at a time
   * @throws DeviceException when the driver refuses
   */
  DeviceStream stream(int marks);

  /**
   * Memory of the device, not initialised; for tests, as engines bring their own.
   *
   * @throws DeviceException when there is not so much
   */
  MemoryRegion allocate(long bytes);

  /** Pinned host memory of the driver's own, not initialised. */
  MemoryRegion allocatePinned(long bytes);

  /**
   * Memory of the device that another process has allocated and exported. It stays readable and writable
   * here until {@link #free}, also when that process has ended.
   *
   * @param handle what the driver gave that process for the allocation
   * @param bytes size of the allocation
   * @throws DeviceException when the driver refuses, for example in a container of another IPC namespace
   */
  MemoryRegion openShared(byte[] handle, long bytes);

  /**
   * Gives back what {@link #allocate}, {@link #allocatePinned} or {@link #openShared} gave, or ends a {@link
   * #pin}; no copy may be under way. Does nothing once the device is closed.
   */
  void free(MemoryRegion region);

  /**
   * Lets the device go. Its streams are closed, what was pinned or allocated is given back. Idempotent.
   *
   * @throws DeviceException when the driver refuses
   */
  @Override
  void close();
}
