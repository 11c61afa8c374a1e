package ucm.store.file.eviction;

import java.time.Duration;
import ucm.platform.thread.PeriodicThread;
import ucm.store.file.config.StoreKind;
import ucm.store.file.health.DirectoryExecutors;

/**
 * Has the files told from time to time when their blocks were last loaded, on a thread of its own: in a
 * store without a capacity, where no {@link CapacityManager} does it.
 */
public final class AccessTimeManager implements AutoCloseable {

  private final AccessTimeFlusher teller;
  private final DirectoryExecutors lanes;
  private final PeriodicThread thread;

  public AccessTimeManager(
      StoreKind kind, AccessTimeFlusher teller, DirectoryExecutors lanes, long intervalNanos) {
    this.teller = teller;
    this.lanes = lanes;
    thread = new PeriodicThread(kind.newThread("uses", 0), intervalNanos, teller::run);
  }

  /** Starts; the first uses are told after one interval. */
  public void start() {
    thread.start();
  }

  /** Ends the thread, for as long as that takes, and tells what is left. */
  @Override
  public void close() {
    thread.stop();
    try {
      if (thread.join(Duration.ofDays(1))) {
        teller.run();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    lanes.close();
  }
}
