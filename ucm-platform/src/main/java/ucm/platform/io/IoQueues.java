package ucm.platform.io;

/** Makes the queues of the workers of a store. Thread-safe. */
public interface IoQueues extends AutoCloseable {

  /** A queue for one worker, which the worker makes itself. */
  IoQueue newQueue();

  /** Closes all queues, and gives back what they shared; the workers have ended. */
  @Override
  void close();
}
