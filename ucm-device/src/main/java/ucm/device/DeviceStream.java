package ucm.device;

import ucm.api.MemoryRegion;

/**
 * A queue of copies that the device works through in order, while the caller goes on. Owned by the
 * thread that asked for it.
 *
 * <p>A copy that was queued reads and writes its memory at any time until a {@linkplain #await mark}
 * after it is reached. When a call throws, what was queued before it is still under way: wait with
 * {@link #awaitAll} before the memory is used for anything else. Queueing allocates nothing.
 */
public interface DeviceStream extends AutoCloseable {

  /**
   * Queues a copy between pinned host memory and memory of the device; which way, the regions say.
   * Bounds are the caller's business.
   *
   * @throws DeviceException when the driver refuses
   */
  void copy(MemoryRegion from, long fromOffset, MemoryRegion to, long toOffset, long bytes);

  /**
   * Queues a copy of rows that lie at equal distances, as {@link #copy} does.
   *
   * @param fromPitch bytes from the start of a row to that of the next, at least {@code rowBytes}
   * @param toPitch the same on the other side
   */
  void copyRows(
      MemoryRegion from,
      long fromOffset,
      long fromPitch,
      MemoryRegion to,
      long toOffset,
      long toPitch,
      long rowBytes,
      int rows);

  /** The largest pitch of {@link #copyRows}. */
  long maxPitch();

  /**
   * Has what is queued from now on wait for an event of the same device.
   *
   * @param event the driver's own handle of it, as {@link ucm.api.Transfer#event} has it
   * @throws DeviceException when the driver refuses
   */
  void waitFor(long event);

  /**
   * Remembers this place in the queue.
   *
   * @param mark from 0; what the mark stood for before is forgotten
   * @throws DeviceException when the driver refuses
   */
  void mark(int mark);

  /**
   * Blocks until everything queued before a mark is done.
   *
   * @throws DeviceException when the driver refuses, or one of the copies failed
   */
  void await(int mark);

  /**
   * Blocks until everything queued is done.
   *
   * @throws DeviceException when the driver refuses, or one of the copies failed
   */
  void awaitAll();

  /** Gives the queue back, which must be empty. Idempotent. */
  @Override
  void close();
}
