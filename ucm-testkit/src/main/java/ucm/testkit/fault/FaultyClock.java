package ucm.testkit.fault;

import java.util.function.LongSupplier;

/** The system's clock, which threads of one name cannot read: they run out of memory instead. */
public final class FaultyClock implements LongSupplier {

  private final String thread;

  /**
   * A clock.
   *
   * @param thread the name of the threads
   */
  public FaultyClock(String thread) {
    this.thread = thread;
  }

  @Override
  public long getAsLong() {
    if (Thread.currentThread().getName().equals(thread)) {
      throw new OutOfMemoryError("thrown by a test");
    }
    return System.nanoTime();
  }
}
