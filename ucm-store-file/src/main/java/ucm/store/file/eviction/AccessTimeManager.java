package ucm.store.file.eviction;

import java.time.Duration;
import ucm.platform.thread.PeriodicThread;
import ucm.store.file.config.StoreKind;
import ucm.store.file.health.DirectoryExecutors;

/**
 * Writes to the files from time to time when their blocks were last loaded, on a thread of its own: in a
 * store without a capacity, where no {@link CapacityManager} does it.
 */
public final class AccessTimeManager implements AutoCloseable {

  private final AccessTimeFlusher flusher;
  private final DirectoryExecutors executors;
  private final PeriodicThread thread;

  public AccessTimeManager(
      StoreKind kind, AccessTimeFlusher flusher, DirectoryExecutors executors, long intervalNanos) {
    this.flusher = flusher;
    this.executors = executors;
    thread = new PeriodicThread(kind.newThread("uses", 0), intervalNanos, flusher::run);
  }

  /** Starts; the first uses are written after one interval. */
  public void start() {
    thread.start();
  }

  /** Ends the thread, for as long as that takes, and writes what is left. */
  @Override
  public void close() {
    thread.stop();
    try {
      if (thread.join(Duration.ofDays(1))) {
        flusher.run();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    executors.close();
  }
}
