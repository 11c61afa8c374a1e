package ucm.platform.io;

import ucm.platform.libc.IoVector;

/**
 * Requests that the kernel works off by itself, while the thread that started them does something
 * else. For one thread, except {@link #close}.
 */
public interface KernelQueue extends AutoCloseable {

  /** Makes queues. */
  interface Opener {

    /**
     * Opens a queue.
     *
     * @param depth how many requests it takes
     * @throws ucm.platform.libc.FileException when the kernel refuses
     */
    KernelQueue open(int depth);
  }

  /** Receives the result of a request. */
  interface Listener {

    /**
     * A request has ended, and the kernel does not touch its memory any more.
     *
     * @param slot the one it was gathered with
     * @param result how many bytes were moved, which may be fewer than asked; or an error number,
     *     negated
     */
    void ended(int slot, long result);
  }

  /**
   * Adds a request. The memory that the vector names, and the vector, stay as they are until it
   * has ended.
   *
   * @param slot from 0 to the depth - 1, not in use
   */
  void gather(int slot, boolean isWrite, int fd, IoVector vector, long offset);

  /** Hands what was gathered to the kernel in one go; a request that it refuses ends with an error. */
  void submit();

  /** Blocks until at least one request has ended, and reports all that have. */
  void await(Listener listener);

  /** Gives the queue back to the kernel. Nothing is under way then. */
  @Override
  void close();
}
