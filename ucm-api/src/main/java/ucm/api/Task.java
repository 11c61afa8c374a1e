package ucm.api;

import java.time.Duration;

/**
 * A load or dump under way. Thread-safe.
 *
 * <p>A task has <em>completed</em> when every shard has ended, well or badly; it then stays so, and the
 * store does not touch the transfer's memory any more. At its deadline ({@code timeout_ms}) a store
 * starts nothing more for a task and ends what it can; a task whose I/O the operating system will not
 * give back (a hung file system) stays open until it does, which {@link #await} reports.
 */
public interface Task {

  /** A number that names the task in logs; unique within its store. */
  long id();

  /** Whether the task has completed. Never blocks. */
  boolean check();

  /**
   * Waits until the task has completed.
   *
   * @param timeout how long at the most
   * @return how it ended; failed shards are a result, not an exception
   * @throws StoreTimeoutException when it has not completed in time; the task goes on, and its memory is
   *     still in use
   * @throws InterruptedException when the thread is interrupted while waiting
   */
  TransferResult await(Duration timeout) throws InterruptedException;

  /**
   * How it ended.
   *
   * @throws IllegalStateException when the task has not completed
   */
  TransferResult result();

  /**
   * Runs an action once when the task has completed: on the thread that ended the last shard, or at once
   * on this one if it has completed already. The action must not block and must not throw.
   */
  void whenTerminal(Runnable action);

  /**
   * Runs an action once when the task has completed and, of a dump, the last stage is done with every
   * block, too: what it kept is found from then on, and what it refused is not. As {@link Store#flush} for
   * one task, but without its failures; a store that writes in the background holds the dump's writes back
   * no longer. The action must not block and must not throw.
   */
  default void whenSettled(Runnable action) {
    whenTerminal(action);
  }
}
