package ucm.store.file.health;

import java.util.function.LongSupplier;

/**
 * What one thread is doing in a directory right now, so that another thread sees when it takes too
 * long. Used over and over by its thread; beginning and ending allocate nothing. Thread-safe.
 */
final class Operation {

  /** In place of a directory. */
  static final int NONE = -1;

  // Guarded by this.
  private int directory = NONE;
  private boolean isTransfer;
  private boolean isLate;
  private long began;

  /** Begins; what was begun before has ended. */
  synchronized void begin(int inDirectory, boolean movesShards, LongSupplier clock) {
    directory = inDirectory;
    isTransfer = movesShards;
    isLate = false;
    began = clock.getAsLong();
  }

  /** Ends; false when it was found late, or nothing was begun. */
  synchronized boolean end() {
    boolean isInTime = directory != NONE && !isLate;
    directory = NONE;
    return isInTime;
  }

  /** The directory in which it moves shards, late or not; {@link #NONE} when it does not. */
  synchronized int transfersIn() {
    return isTransfer ? directory : NONE;
  }

  /** Finds out whether it takes too long; says so once. Returns the directory, or {@link #NONE}. */
  synchronized int lateIn(LongSupplier clock, long timeoutNanos) {
    if (directory == NONE || isLate || clock.getAsLong() - began < timeoutNanos) {
      return NONE;
    }
    isLate = true;
    return directory;
  }
}
