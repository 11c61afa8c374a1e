package ucm.store.file.health;

import java.util.Arrays;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;

/**
 * Decides by results whether one directory may be used.
 *
 * <pre>
 *   CLOSED --- threshold of the last results failed --- OPEN --- a probe begins --- HALF_OPEN
 *      ^                                                  ^----- the probe failed -----|
 *      |---------------------------- the probe went well ------------------------------|
 * </pre>
 *
 * <p>Only a closed breaker lets work through, and only then do results of work count; from then on one
 * probe decides. There is never more than one probe: while one hangs, no other begins. Thread-safe;
 * reporting a success is one read while nothing has failed.
 */
final class DirectoryBreaker {

  /** Whether work is let through. */
  enum State {
    CLOSED(0),
    HALF_OPEN(1),
    OPEN(2);

    /** The number shown in metrics; the larger, the worse. */
    final int number;

    State(int number) {
      this.number = number;
    }
  }

  /** What breakers count, and whom they tell of a directory that is down or up again. */
  record Reports(
      StoreMetrics.Counter trips,
      StoreMetrics.Counter probes,
      StoreMetrics.Counter probeFailures,
      IntConsumer onDown,
      IntConsumer onUp) {}

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryBreaker.class);

  private final String store;
  private final int number;
  private final String directory;
  private final DirectoryHealth.Rules rules;
  private final Runnable probe;
  private final Reports reports;
  final Operation probing = new Operation(Operation.Kind.PROBE);

  // Guarded by this; state, failures and refusal are read without it.
  private final boolean[] failed;
  private int next;
  private volatile int failures;
  private volatile State state = State.CLOSED;
  private volatile @Nullable StoreException refusal;
  private @Nullable RuntimeException lastFault;
  private boolean isProbing;

  /**
   * A closed breaker.
   *
   * @param probe tries the directory out; throws when it does not work
   */
  DirectoryBreaker(
      String store,
      int number,
      String directory,
      DirectoryHealth.Rules rules,
      Runnable probe,
      Reports reports) {
    this.store = store;
    this.number = number;
    this.directory = directory;
    this.rules = rules;
    this.probe = probe;
    this.reports = reports;
    this.failed = new boolean[rules.windowSize()];
  }

  State state() {
    return state;
  }

  /** Why the directory must not be used now, or null when it may be. Hot path. */
  @Nullable StoreException refusal() {
    return refusal;
  }

  /** Records a success. Hot path. */
  void succeeded() {
    // A window without failures stays one, wherever in it we are.
    if (failures > 0) {
      record(null);
    }
  }

  /** Records a failure; the same fault reported again counts once. */
  void failed(RuntimeException fault) {
    synchronized (this) {
      if (fault.equals(lastFault)) {
        return;
      }
      lastFault = fault;
    }
    record(fault);
  }

  private void record(@Nullable RuntimeException fault) {
    boolean opens;
    synchronized (this) {
      opens = state == State.CLOSED && count(fault != null) && fault != null;
      if (opens && fault != null) {
        open(fault);
      }
    }
    if (opens) {
      reports.trips.increment();
      StoreException why = refusal;
      LOG.warn(
          "{}; look-ups there answer absent, loads and dumps are refused",
          why == null ? store : why.getMessage());
      reports.onDown.accept(number);
    } else if (fault != null) {
      LOG.debug("{}: {} failed: {}", store, directory, fault.getMessage());
    }
  }

  /** Counts a result; true when so many of the last ones have failed that the breaker opens. */
  private boolean count(boolean failure) {
    int count = failures + (failure ? 1 : 0) - (failed[next] ? 1 : 0);
    failures = count;
    failed[next] = failure;
    next = (next + 1) % failed.length;
    return count >= threshold();
  }

  private int threshold() {
    return Math.min(rules.failureThreshold(), rules.windowSize());
  }

  private void open(RuntimeException fault) {
    state = State.OPEN;
    Arrays.fill(failed, false);
    failures = 0;
    refusal =
        new StoreException(
            ("%s does not use %s for now: %s of at most %s last results were failures, the last"
                 + " one: %s; it is probed every %s s and used again when a probe goes well; find"
                 + " out what is wrong with it")
                .formatted(
                    store,
                    directory,
                    threshold(),
                    rules.windowSize(),
                    fault.getMessage(),
                    DirectoryHealth.seconds(rules.intervalNanos())),
            fault);
  }

  /**
   * Probes the directory on the calling thread.
   *
   * @return false when a probe is under way, and no other was made
   */
  boolean probe(long nowNanos) {
    synchronized (this) {
      if (isProbing) {
        return false;
      }
      isProbing = true;
      if (state == State.OPEN) {
        state = State.HALF_OPEN;
      }
    }
    reports.probes.increment();
    probing.begin(number, nowNanos);
    RuntimeException fault = null;
    try {
      probe.run();
    } catch (RuntimeException e) {
      fault = e;
    } catch (Error e) {
      LOG.error("{}: the probe of {} threw", store, directory, e);
      fault = new StoreException("a probe threw " + e, e);
    }
    // One found late was counted as failed, and the next one decides.
    if (probing.end()) {
      probeEnded(fault);
    }
    synchronized (this) {
      isProbing = false;
    }
    return true;
  }

  /** A probe has ended, or takes too long; one that began before the breaker opened decides nothing. */
  void probeEnded(@Nullable RuntimeException fault) {
    if (fault != null) {
      reports.probeFailures.increment();
    }
    boolean decides;
    synchronized (this) {
      decides = state == State.HALF_OPEN;
      if (decides && fault != null) {
        state = State.OPEN;
      } else if (decides) {
        state = State.CLOSED;
        refusal = null;
        lastFault = null;
      }
    }
    if (!decides) {
      record(fault);
    } else if (fault == null) {
      LOG.info("{} uses {} again: a probe went well", store, directory);
      reports.onUp.accept(number);
    }
  }
}
