package ucm.platform.thread;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closes a store one of whose threads ends by an error, such as an OutOfMemoryError that the process
 * survives: no other thread does its work, and tasks would wait for it for ever.
 */
public final class ThreadFaults implements Thread.UncaughtExceptionHandler {

  private static final Logger LOG = LoggerFactory.getLogger(ThreadFaults.class);

  private final String store;
  private final Runnable close;

  /**
   * A handler for all threads of a store.
   *
   * @param store its name in messages
   * @param close closes it; may be called more than once, and joins the threads
   */
  public ThreadFaults(String store, Runnable close) {
    this.store = store;
    this.close = close;
  }

  @Override
  public void uncaughtException(Thread thread, Throwable fault) {
    // A thread of its own, as closing joins the one that ends. First of all: to log takes memory.
    try {
      Thread.ofPlatform().daemon().name(thread.getName() + "-fault").start(this::close);
    } finally {
      LOG.error(
          "{}: thread {} ended by {}; the store is closed: what is open fails, and nothing more is"
              + " accepted",
          store,
          thread.getName(),
          fault,
          fault);
    }
  }

  private void close() {
    // An interrupted thread does not wait for what may never end.
    Thread.currentThread().interrupt();
    try {
      close.run();
    } catch (RuntimeException e) {
      LOG.error("{} failed to close", store, e);
    }
  }
}
