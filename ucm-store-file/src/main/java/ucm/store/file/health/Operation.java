package ucm.store.file.health;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * What one thread is doing in a directory right now, so that another thread sees when it takes too
 * long. Used over and over by its thread; beginning and ending take no lock and allocate nothing.
 */
final class Operation {

  enum Kind {
    PROBE,
    TRANSFER,
    LOOKUP
  }

  // Odd numbers; times are made even.
  private static final long IDLE = 1;
  private static final long LATE = 3;

  final Kind kind;

  private volatile int directory;
  // When it began, or one of the two above.
  private final AtomicLong start = new AtomicLong(IDLE);

  Operation(Kind kind) {
    this.kind = kind;
  }

  /** Begins; what was begun before has ended. */
  void begin(int inDirectory, long nowNanos) {
    // Before the directory: else the last operation could be found late in this one's.
    start.setRelease(IDLE);
    directory = inDirectory;
    start.set(nowNanos & ~1L);
  }

  /** Ends; false when it was found late, or nothing was begun. */
  boolean end() {
    return (start.getAndSet(IDLE) & 1) == 0;
  }

  /** The directory it is under way in, late or not; -1 for none. */
  int currentDirectory() {
    return start.get() == IDLE ? -1 : directory;
  }

  /**
   * Finds out whether it takes too long; says so once. Returns the directory, or -1 when all is well.
   */
  int lateIn(LongSupplier clock, long timeoutNanos) {
    long began = start.get();
    int in = directory;
    boolean late =
        (began & 1) == 0
            && clock.getAsLong() - began >= timeoutNanos
            && start.compareAndSet(began, LATE);
    return late ? in : -1;
  }
}
