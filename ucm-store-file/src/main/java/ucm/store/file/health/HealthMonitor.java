package ucm.store.file.health;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.platform.thread.PeriodicThread;

/**
 * Watches over the media of a store, each by a {@link CircuitBreaker} of its own: one that fails or
 * hangs is left alone until a probe finds that it works again. It does not know what a medium is.
 *
 * <p>A breaker is fed by what the store reports of its own work, by operations that take longer than
 * the timeout (while they do), and by probes at intervals. There is never more than one probe of a
 * medium: while one hangs, there is no other. Recovery needs nobody: once a hanging probe returns, the
 * next one follows after an interval.
 *
 * <p>Thread-safe. One thread per medium probes, and one looks for late operations while there are any.
 */
public final class HealthMonitor {

  /**
   * How a failing medium is told from a good one.
   *
   * @param intervalNanos time between two probes
   * @param timeoutNanos how long a probe or an operation may take before it counts as failed
   * @param windowSize how many of the last results are looked at
   * @param failureThreshold how many of them must have failed for the medium to be left alone
   */
  public record Rules(
      long intervalNanos, long timeoutNanos, int windowSize, int failureThreshold) {}

  /**
   * A medium.
   *
   * @param name what people know it by
   * @param probe tries it out; throws when it does not work
   */
  public record Medium(String name, Runnable probe) {}

  private static final Logger LOG = LoggerFactory.getLogger(HealthMonitor.class);

  private static final class Watched {

    final Medium medium;
    final CircuitBreaker breaker;
    final VolumeOperation probeOperation;
    final PeriodicThread prober;

    // Why it must not be used, or null; written under the lock of this with the breaker's state.
    volatile @Nullable StoreException refusal;
    // Guarded by this.
    boolean probing;
    @Nullable RuntimeException lastFault;

    Watched(Medium medium, Rules rules, VolumeOperation probeOperation, PeriodicThread prober) {
      this.medium = medium;
      this.breaker = new CircuitBreaker(rules.windowSize, rules.failureThreshold);
      this.probeOperation = probeOperation;
      this.prober = prober;
    }
  }

  private final String stage;
  private final Rules rules;
  private final IntConsumer onDown;
  private volatile IntConsumer onUp = medium -> {};
  private final LateOperations late;
  private final List<Watched> media = new ArrayList<>();
  private final StoreMetrics.Counter trips;
  private final StoreMetrics.Counter probes;
  private final StoreMetrics.Counter probeFailures;
  private final StoreMetrics.Counter lateOperations;

  /**
   * All media are taken for good; starts no thread yet.
   *
   * @param stage names the store in messages; its lower case, metrics and threads
   * @param media what is watched over; counted from 0 in all methods
   * @param onDown is told of a medium that must not be used any more, by the thread that found out
   * @param faults is told of a thread that ends by an error
   */
  public HealthMonitor(
      String stage,
      List<Medium> media,
      Rules rules,
      StoreMetrics metrics,
      LongSupplier clock,
      IntConsumer onDown,
      Thread.UncaughtExceptionHandler faults) {
    this.stage = stage;
    this.rules = rules;
    this.onDown = onDown;
    String lower = stage.toLowerCase(Locale.ROOT);
    String prefix = lower + "_health_";
    late =
        new LateOperations(
            "ucm-" + lower + "-late-0", faults, rules.timeoutNanos, clock, this::operationIsLate);
    for (int i = 0; i < media.size(); i++) {
      int index = i;
      PeriodicThread prober =
          new PeriodicThread(
              Thread.ofPlatform()
                  .daemon()
                  .name("ucm-" + lower + "-probe-" + i)
                  .uncaughtExceptionHandler(faults),
              rules.intervalNanos,
              () -> probe(index));
      this.media.add(
          new Watched(media.get(i), rules, late.newOperation(VolumeOperation.Kind.PROBE), prober));
      if (media.size() > 1) {
        metrics.gauge(
            prefix + "state_" + i,
            "Breaker of " + media.get(i).name + ": 0 closed, 1 half-open, 2 open",
            () -> state(index).number());
      }
    }
    metrics.gauge(
        prefix + "state", "Worst breaker: 0 closed, 1 half-open, 2 open", this::worstState);
    trips = metrics.counter(prefix + "trips", "Times that a breaker has opened");
    probes = metrics.counter(prefix + "probes", "Probes begun");
    probeFailures = metrics.counter(prefix + "probe_failures", "Probes failed or late");
    lateOperations =
        metrics.counter(prefix + "late_operations", "Loads, dumps and look-ups that took too long");
  }

  /**
   * Names who is told of a medium that may be used again, by the thread that found out. To be called
   * before anything is watched.
   */
  public void whenUp(IntConsumer action) {
    onUp = action;
  }

  /** Starts to probe; the first time after one interval. */
  public void start() {
    media.forEach(watched -> watched.prober.start());
  }

  /** Why a medium must not be used now, or null when it may be. Hot path. */
  public @Nullable StoreException refusal(int medium) {
    return media.get(medium).refusal;
  }

  /** The state of a medium's breaker. */
  public CircuitBreaker.State state(int medium) {
    return media.get(medium).breaker.state();
  }

  private int worstState() {
    int worst = 0;
    for (Watched watched : media) {
      worst = Math.max(worst, watched.breaker.state().number());
    }
    return worst;
  }

  /** For one thread to say what it is doing, over and over. */
  public VolumeOperation newOperation(VolumeOperation.Kind kind) {
    return late.newOperation(kind);
  }

  /** How many transfers are under way on a medium; with those that it holds. */
  public int transfers(int medium) {
    return late.count(VolumeOperation.Kind.TRANSFER, medium);
  }

  /** An operation begins; the one before has ended. Hot path. */
  public void begin(VolumeOperation operation, int medium) {
    operation.begin(medium);
    late.began();
  }

  /**
   * An operation ends. Hot path.
   *
   * @return false when it took too long, which has been counted: its result is no news
   */
  public boolean end(VolumeOperation operation) {
    return operation.end();
  }

  /** Takes up that a medium did its work. */
  public void succeeded(int medium) {
    media.get(medium).breaker.succeeded();
  }

  /** Takes up that a medium failed; the same fault told again by others counts once. */
  public void failed(int medium, RuntimeException fault) {
    Watched watched = media.get(medium);
    CircuitBreaker.Change change;
    synchronized (watched) {
      if (fault.equals(watched.lastFault)) {
        return;
      }
      watched.lastFault = fault;
      change = watched.breaker.failed();
      apply(watched, change, fault);
    }
    tell(medium, change, fault);
  }

  private void operationIsLate(int medium, boolean isProbe) {
    StoreException fault =
        new StoreException(
            (isProbe ? "a probe" : "an operation")
                + " did not end within "
                + seconds(rules.timeoutNanos)
                + " s");
    if (isProbe) {
      probeEnded(medium, fault);
    } else {
      lateOperations.increment();
      failed(medium, fault);
    }
  }

  /** Looks for operations that take too long, as the thread does that is there for it. */
  public void lookForLateOperations() {
    late.look();
  }

  /**
   * Probes a medium on the calling thread, as the thread does that is there for it.
   *
   * @return false when a probe is under way, and no other was made
   */
  public boolean probe(int medium) {
    Watched watched = media.get(medium);
    synchronized (watched) {
      if (watched.probing) {
        return false;
      }
      watched.probing = true;
      watched.breaker.beginProbe();
    }
    probes.increment();
    begin(watched.probeOperation, medium);
    RuntimeException fault = null;
    try {
      watched.medium.probe.run();
    } catch (RuntimeException e) {
      fault = e;
    } catch (Throwable t) {
      // Without this thread the medium would never be used again.
      LOG.error("{}: the probe of {} threw", stage, watched.medium.name, t);
      fault = new StoreException("a probe threw " + t, t);
    }
    // One found late was counted as failed, and the next one decides.
    if (end(watched.probeOperation)) {
      probeEnded(medium, fault);
    }
    synchronized (watched) {
      watched.probing = false;
    }
    return true;
  }

  private void probeEnded(int medium, @Nullable RuntimeException fault) {
    if (fault != null) {
      probeFailures.increment();
    }
    Watched watched = media.get(medium);
    CircuitBreaker.Change change;
    synchronized (watched) {
      change = watched.breaker.endProbe(fault == null);
      apply(watched, change, fault);
    }
    tell(medium, change, fault);
  }

  private void apply(
      Watched watched, CircuitBreaker.Change change, @Nullable RuntimeException fault) {
    switch (change) {
      case NONE -> {}
      case CLOSED -> {
        watched.refusal = null;
        watched.lastFault = null;
      }
      case OPENED ->
          watched.refusal =
              new StoreException(
                  stage
                      + " does not use "
                      + watched.medium.name
                      + " for now: "
                      + Math.min(rules.failureThreshold, rules.windowSize)
                      + " of at most "
                      + rules.windowSize
                      + " last results were failures, the last one: "
                      + (fault == null ? "unknown" : fault.getMessage())
                      + "; it is probed every "
                      + seconds(rules.intervalNanos)
                      + " s and used again when a probe goes well; find out what is wrong with it",
                  fault);
    }
  }

  private void tell(int medium, CircuitBreaker.Change change, @Nullable RuntimeException fault) {
    Watched watched = media.get(medium);
    switch (change) {
      case NONE -> {
        if (fault != null) {
          LOG.debug("{}: {} failed: {}", stage, watched.medium.name, fault.getMessage());
        }
      }
      case CLOSED -> {
        LOG.info("{} uses {} again: a probe went well", stage, watched.medium.name);
        onUp.accept(medium);
      }
      case OPENED -> {
        trips.increment();
        StoreException refusal = watched.refusal;
        LOG.warn(
            "{}; look-ups there answer absent, loads and dumps are refused",
            refusal == null ? stage : refusal.getMessage());
        onDown.accept(medium);
      }
    }
  }

  private static double seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toMillis(nanos) / 1000.0;
  }

  /**
   * Begins no further probe, looks for late operations no more, and waits for the threads. A thread whose probe hangs is left to end by itself.
   *
   * @param timeout how long to wait at the most
   * @return false when a thread still runs, or the caller was interrupted (its flag is set again)
   */
  public boolean close(Duration timeout) {
    media.forEach(watched -> watched.prober.stop());
    late.stop();
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      boolean ended = late.join(left(deadline));
      for (Watched watched : media) {
        ended &= watched.prober.join(left(deadline));
      }
      return ended;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static Duration left(long deadline) {
    return Duration.ofNanos(Math.max(1, deadline - System.nanoTime()));
  }
}
