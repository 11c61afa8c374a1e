package ucm.platform.io;

import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;

/**
 * The engine of one worker: reads and writes open files, as many requests side by side as it can.
 *
 * <p>A request is started and later awaited, in the order in which requests were started; at most
 * {@link #depth} may be started and not awaited. Until then its vector, the memory it names, its path
 * and its descriptor belong to the queue. What an engine gathers it hands to the kernel at the latest
 * when the first of its requests is awaited. Every byte is counted: where the kernel did less than it
 * was asked to, the rest is done before a request is called done.
 *
 * <p>After an exception the caller lets no other thread use what it has handed in before {@link #drain}
 * has returned. For one thread; except {@link #close}, which another thread may call once that one has stopped.
 */
public interface IoQueue extends AutoCloseable {

  /** How many requests may be under way. */
  int depth();

  /** How many bytes a request that reads should have at the most. */
  default int readBytes() {
    return 512 << 10;
  }

  /**
   * How many bytes a request that writes should have at the most. The kernel gives a call's bytes larger
   * segments of memory for the file, with less work for each page, the more there are of them.
   */
  default int writeBytes() {
    return 2 << 20;
  }

  /** Starts a read that ends when the vector is full or the file ends. */
  void read(int fd, NativePath path, IoVector into, long offset);

  /** Starts a write of all of a vector. */
  void write(int fd, NativePath path, IoVector from, long offset);

  /**
   * Waits for the oldest request.
   *
   * @return how many bytes were moved; fewer than asked only for a read, at the end of its file
   * @throws ucm.platform.libc.FileException when the request failed
   */
  long await();

  /** Waits until nothing is under way any more, and forgets all requests. Does not throw. */
  void drain();

  /** Gives back what the kernel holds for the queue; nothing is under way then. */
  @Override
  void close();
}
