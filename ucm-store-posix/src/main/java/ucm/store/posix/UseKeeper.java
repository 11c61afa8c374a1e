package ucm.store.posix;

import java.time.Duration;
import ucm.store.common.IntervalThread;

/**
 * Has the files told from time to time when their blocks were last loaded, on a thread of its own: in a
 * store without a capacity, where no {@link SpaceKeeper} does it.
 */
final class UseKeeper implements AutoCloseable {

  private final UseTeller teller;
  private final BackendLanes lanes;
  private final IntervalThread thread;

  UseKeeper(StoreKind kind, UseTeller teller, BackendLanes lanes, long intervalNanos) {
    this.teller = teller;
    this.lanes = lanes;
    thread = new IntervalThread(kind.newThread("uses", 0), intervalNanos, teller::run);
  }

  /** Starts; the first uses are told after one interval. */
  void start() {
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
