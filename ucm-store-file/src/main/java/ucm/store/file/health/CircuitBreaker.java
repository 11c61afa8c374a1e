package ucm.store.file.health;

import java.util.Arrays;

/**
 * Decides by results whether a volume may be used.
 *
 * <pre>
 *   CLOSED --- threshold of the last results failed --- OPEN --- a probe begins --- HALF_OPEN
 *      ^                                                  ^----- the probe failed -----|
 *      |---------------------------- the probe went well ------------------------------|
 * </pre>
 *
 * <p>Only a closed breaker lets work through, and only then do results of work count; from then on one
 * probe decides. Knows neither what the volume is nor the time. Thread-safe; reporting a success is one
 * read while nothing has failed.
 */
public final class CircuitBreaker {

  /** Whether work is let through. */
  public enum State {
    /** Work is let through. */
    CLOSED(0),
    /** No work is let through; the probe under way decides. */
    HALF_OPEN(1),
    /** No work is let through. */
    OPEN(2);

    private final int number;

    State(int number) {
      this.number = number;
    }

    /** The number shown in metrics; the larger, the worse. */
    public int number() {
      return number;
    }
  }

  /** What a result has changed. */
  public enum Change {
    /** Nothing. */
    NONE,
    /** The breaker has opened. */
    OPENED,
    /** The breaker has closed again. */
    CLOSED
  }

  private final int threshold;

  // Written under the lock of this; state and failures are read without it on the hot path.
  private final boolean[] failed;
  private int next;
  private volatile int failures;
  private volatile State state = State.CLOSED;

  /**
   * A closed breaker.
   *
   * @param windowSize how many of the last results are counted
   * @param threshold how many of them must have failed for it to open; more than the window holds
   *     means all of them
   */
  public CircuitBreaker(int windowSize, int threshold) {
    this.failed = new boolean[windowSize];
    this.threshold = Math.min(threshold, windowSize);
  }

  /** Whether work is let through. */
  public State state() {
    return state;
  }

  /** Records a success. */
  public void succeeded() {
    // A window without failures stays one, wherever in it we are.
    if (failures > 0) {
      record(false);
    }
  }

  /** Records a failure. */
  public Change failed() {
    return record(true);
  }

  /** A probe begins. */
  public synchronized void beginProbe() {
    if (state == State.OPEN) {
      state = State.HALF_OPEN;
    }
  }

  /** A probe has ended; one that began before the breaker opened decides nothing. */
  public synchronized Change endProbe(boolean ok) {
    if (state != State.HALF_OPEN) {
      return record(!ok);
    }
    state = ok ? State.CLOSED : State.OPEN;
    return ok ? Change.CLOSED : Change.NONE;
  }

  private synchronized Change record(boolean failure) {
    if (state != State.CLOSED) {
      return Change.NONE;
    }
    int count = failures + (failure ? 1 : 0) - (failed[next] ? 1 : 0);
    failed[next] = failure;
    next = (next + 1) % failed.length;
    failures = count;
    if (count < threshold) {
      return Change.NONE;
    }
    state = State.OPEN;
    Arrays.fill(failed, false);
    failures = 0;
    return Change.OPENED;
  }
}
