package ucm.store.file.volume;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.config.FileStoreConfig;

/**
 * Decides by results whether a directory, or the next stage, may be used.
 *
 * <pre>
 *   CLOSED --- threshold of the last results failed --- OPEN --- a probe begins --- HALF_OPEN
 *      ^                                                  ^----- the probe failed -----|
 *      |---------------------------- the probe went well ------------------------------|
 * </pre>
 *
 * <p>Only a closed breaker lets work through, and only then do results of work count; from then on one
 * probe decides. There is never more than one probe: while one hangs, no other begins. With {@code
 * store_health.enabled: false} it stays closed. Thread-safe; reporting a success is one read while nothing
 * has failed.
 */
public abstract class Breaker {

  /** Whether work is let through. */
  enum State {
    CLOSED,
    HALF_OPEN,
    OPEN
  }

  /** What breakers count. */
  public record Counters(
      StoreMetrics.Counter trips, StoreMetrics.Counter probes, StoreMetrics.Counter probeFailures) {

    /** Counters whose names begin alike. */
    public static Counters of(StoreMetrics metrics, String prefix) {
      return new Counters(
          metrics.counter(prefix + "trips", "Times that a breaker has opened"),
          metrics.counter(prefix + "probes", "Probes begun"),
          metrics.counter(prefix + "probe_failures", "Probes failed or late"));
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(Breaker.class);

  protected final FileStoreConfig.Health rules;
  protected final LongSupplier clock;
  private final String store;
  private final String what;
  private final Counters counters;
  private final int threshold;

  // Guarded by this; state, failures and refusal are read without it.
  private final boolean[] failed;
  private int next;
  private volatile int failures;
  private volatile State state = State.CLOSED;
  private volatile @Nullable StoreException refusal;
  private @Nullable RuntimeException lastFault;
  private boolean isProbing;
  private boolean isProbeLate;
  private long probeBegan;

  /**
   * A closed breaker.
   *
   * @param store who uses it, for messages
   * @param what it decides about, for messages
   */
  protected Breaker(
      String store,
      String what,
      FileStoreConfig.Health rules,
      LongSupplier clock,
      Counters counters) {
    this.store = store;
    this.what = what;
    this.rules = rules;
    this.clock = clock;
    this.counters = counters;
    this.threshold = Math.min(rules.failureThreshold(), rules.windowSize());
    this.failed = new boolean[rules.windowSize()];
  }

  /** Tries it out; throws when it does not work. */
  protected abstract void tryOut();

  /** It is not to be used any more. */
  protected void opened() {}

  /** It may be used again; called by the thread that found out. */
  protected void closed() {}

  State state() {
    return state;
  }

  /** Its state for metrics: 0 closed, 1 half-open, 2 open. */
  public int stateNumber() {
    return switch (state) {
      case CLOSED -> 0;
      case HALF_OPEN -> 1;
      case OPEN -> 2;
    };
  }

  /** Whether it is used, and none of the last results was a failure; false where none is counted. */
  public boolean isSound() {
    return rules.enabled() && state == State.CLOSED && failures == 0;
  }

  /** Why it must not be used now, or null when it may be. Hot path. */
  public @Nullable StoreException refusal() {
    return refusal;
  }

  /** Records a success. Hot path. */
  protected void succeeded() {
    // A window without failures stays one, wherever in it we are.
    if (failures > 0) {
      record(null);
    }
  }

  /** Records a failure; the same fault reported again counts once. */
  protected void failed(RuntimeException fault) {
    synchronized (this) {
      if (fault.equals(lastFault)) {
        return;
      }
      lastFault = fault;
    }
    record(fault);
  }

  private void record(@Nullable RuntimeException fault) {
    StoreException opened = null;
    synchronized (this) {
      if (rules.enabled() && state == State.CLOSED && count(fault != null) && fault != null) {
        opened = open(fault);
      }
    }
    if (opened != null) {
      counters.trips.increment();
      LOG.warn(
          "{}; look-ups there answer absent, loads and dumps are refused", opened.getMessage());
      opened();
    } else if (fault != null) {
      LOG.debug("{}: {} failed: {}", store, what, fault.getMessage());
    }
  }

  /** Counts a result; true when so many of the last ones have failed that the breaker opens. */
  private boolean count(boolean failure) {
    int count = failures + (failure ? 1 : 0) - (failed[next] ? 1 : 0);
    failures = count;
    failed[next] = failure;
    next = (next + 1) % failed.length;
    return count >= threshold;
  }

  private StoreException open(RuntimeException fault) {
    state = State.OPEN;
    Arrays.fill(failed, false);
    failures = 0;
    StoreException why =
        new StoreException(
            ("%s does not use %s for now: %s of at most %s last results were failures, the last"
                 + " one: %s; it is probed every %s s and used again when a probe goes well; find"
                 + " out what is wrong with it")
                .formatted(
                    store,
                    what,
                    threshold,
                    rules.windowSize(),
                    fault.getMessage(),
                    seconds(rules.intervalNanos())),
            fault);
    refusal = why;
    return why;
  }

  /** Says that something took too long. */
  protected StoreException late(String what) {
    return new StoreException(what + " within " + seconds(rules.timeoutNanos()) + " s");
  }

  static double seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toMillis(nanos) / 1000.0;
  }

  /**
   * Probes on the calling thread.
   *
   * @return false when a probe is under way, and no other was made
   */
  protected boolean probe() {
    synchronized (this) {
      if (isProbing) {
        return false;
      }
      isProbing = true;
      isProbeLate = false;
      probeBegan = clock.getAsLong();
      if (state == State.OPEN) {
        state = State.HALF_OPEN;
      }
    }
    counters.probes.increment();
    RuntimeException fault = null;
    try {
      tryOut();
    } catch (RuntimeException e) {
      fault = e;
    } catch (Error e) {
      LOG.error("{}: the probe of {} threw", store, what, e);
      fault = new StoreException("a probe threw " + e, e);
    }
    // One found late was counted as failed, and the next one decides.
    if (takeProbe()) {
      probeEnded(fault);
    }
    synchronized (this) {
      isProbing = false;
    }
    return true;
  }

  /** Counts a probe that takes too long as failed, once. */
  protected void findLateProbe() {
    boolean isLate;
    synchronized (this) {
      isLate = isProbing && clock.getAsLong() - probeBegan >= rules.timeoutNanos() && takeProbe();
    }
    if (isLate) {
      probeEnded(late("a probe did not end"));
    }
  }

  /** False when the probe under way was counted already. */
  private synchronized boolean takeProbe() {
    boolean isFirst = !isProbeLate;
    isProbeLate = true;
    return isFirst;
  }

  /** A probe has ended, or takes too long; one that began before the breaker opened decides nothing. */
  private void probeEnded(@Nullable RuntimeException fault) {
    if (fault != null) {
      counters.probeFailures.increment();
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
      LOG.info("{} uses {} again: a probe went well", store, what);
      closed();
    }
  }
}
