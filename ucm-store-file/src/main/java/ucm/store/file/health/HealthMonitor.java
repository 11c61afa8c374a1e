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
 * Monitors the volumes of a store, each by a {@link CircuitBreaker} of its own: one that fails or
 * hangs is left alone until a probe finds that it works again. It does not know what a volume is.
 *
 * <p>A breaker is fed by what the store reports of its own work, by operations that take longer than
 * the timeout (while they do), and by probes at intervals. There is never more than one probe of a
 * volume: while one hangs, there is no other. Recovery is automatic: once a hanging probe returns, the
 * next one follows after an interval.
 *
 * <p>Thread-safe. One thread per volume probes, and one finds late operations while there are any.
 */
public final class HealthMonitor {

  /**
   * What counts as failing.
   *
   * @param intervalNanos time between two probes
   * @param timeoutNanos how long a probe or an operation may take before it counts as failed
   * @param windowSize how many of the last results are counted
   * @param failureThreshold how many of them must have failed for the volume to be left alone
   */
  public record Rules(
      long intervalNanos, long timeoutNanos, int windowSize, int failureThreshold) {}

  /**
   * A volume.
   *
   * @param name its name in messages
   * @param probe tries it out; throws when it does not work
   */
  public record Volume(String name, Runnable probe) {}

  private static final Logger LOG = LoggerFactory.getLogger(HealthMonitor.class);

  private static final class Monitored {

    final Volume volume;
    final CircuitBreaker breaker;
    final VolumeOperation probeOperation;
    final PeriodicThread prober;

    // Why it must not be used, or null; written under the lock of this with the breaker's state.
    volatile @Nullable StoreException refusal;
    // Guarded by this.
    boolean probing;
    @Nullable RuntimeException lastFault;

    Monitored(Volume volume, Rules rules, VolumeOperation probeOperation, PeriodicThread prober) {
      this.volume = volume;
      this.breaker = new CircuitBreaker(rules.windowSize, rules.failureThreshold);
      this.probeOperation = probeOperation;
      this.prober = prober;
    }
  }

  private final String stage;
  private final Rules rules;
  private final IntConsumer onDown;
  private volatile IntConsumer onUp = volume -> {};
  private final LateOperations late;
  private final List<Monitored> volumes = new ArrayList<>();
  private final StoreMetrics.Counter trips;
  private final StoreMetrics.Counter probes;
  private final StoreMetrics.Counter probeFailures;
  private final StoreMetrics.Counter lateOperations;

  /**
   * All volumes are taken for good; starts no thread yet.
   *
   * @param stage names the store in messages; its lower case, metrics and threads
   * @param volumes what is monitored; counted from 0 in all methods
   * @param onDown is called with a volume that must not be used any more, by the thread that found out
   * @param faults handles a thread that ends by an error
   */
  public HealthMonitor(
      String stage,
      List<Volume> volumes,
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
            Thread.ofPlatform()
                .daemon()
                .name("ucm-" + lower + "-late-0")
                .uncaughtExceptionHandler(faults),
            rules.timeoutNanos,
            clock,
            this::operationIsLate);
    for (int i = 0; i < volumes.size(); i++) {
      int index = i;
      PeriodicThread prober =
          new PeriodicThread(
              Thread.ofPlatform()
                  .daemon()
                  .name("ucm-" + lower + "-probe-" + i)
                  .uncaughtExceptionHandler(faults),
              rules.intervalNanos,
              () -> probe(index));
      this.volumes.add(
          new Monitored(
              volumes.get(i), rules, late.newOperation(VolumeOperation.Kind.PROBE), prober));
      if (volumes.size() > 1) {
        metrics.gauge(
            prefix + "state_" + i,
            "Breaker of " + volumes.get(i).name + ": 0 closed, 1 half-open, 2 open",
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
   * Sets what is called with a volume that may be used again, by the thread that found out. To be called
   * before the start.
   */
  public void whenUp(IntConsumer action) {
    onUp = action;
  }

  /** Starts to probe; the first time after one interval. */
  public void start() {
    volumes.forEach(monitored -> monitored.prober.start());
  }

  /** Why a volume must not be used now, or null when it may be. Hot path. */
  public @Nullable StoreException refusal(int volume) {
    return volumes.get(volume).refusal;
  }

  /** The state of a volume's breaker. */
  public CircuitBreaker.State state(int volume) {
    return volumes.get(volume).breaker.state();
  }

  private int worstState() {
    int worst = 0;
    for (Monitored monitored : volumes) {
      worst = Math.max(worst, monitored.breaker.state().number());
    }
    return worst;
  }

  /** For one thread to say what it is doing, over and over. */
  public VolumeOperation newOperation(VolumeOperation.Kind kind) {
    return late.newOperation(kind);
  }

  /** How many transfers are under way on a volume; with those that it holds. */
  public int transfers(int volume) {
    return late.count(VolumeOperation.Kind.TRANSFER, volume);
  }

  /** An operation begins; the one before has ended. Hot path. */
  public void begin(VolumeOperation operation, int volume) {
    operation.begin(volume);
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

  /** Records a success of a volume. */
  public void succeeded(int volume) {
    volumes.get(volume).breaker.succeeded();
  }

  /** Records a failure of a volume; the same fault reported again counts once. */
  public void failed(int volume, RuntimeException fault) {
    Monitored monitored = volumes.get(volume);
    CircuitBreaker.Change change;
    synchronized (monitored) {
      if (fault.equals(monitored.lastFault)) {
        return;
      }
      monitored.lastFault = fault;
      change = monitored.breaker.failed();
      apply(monitored, change, fault);
    }
    tell(volume, change, fault);
  }

  private void operationIsLate(int volume, boolean isProbe) {
    StoreException fault =
        new StoreException(
            (isProbe ? "a probe" : "an operation")
                + " did not end within "
                + seconds(rules.timeoutNanos)
                + " s");
    if (isProbe) {
      probeEnded(volume, fault);
    } else {
      lateOperations.increment();
      failed(volume, fault);
    }
  }

  /** Finds operations that take too long, as its thread does. */
  public void findLateOperations() {
    late.runOnce();
  }

  /**
   * Probes a volume on the calling thread, as its own thread does.
   *
   * @return false when a probe is under way, and no other was made
   */
  public boolean probe(int volume) {
    Monitored monitored = volumes.get(volume);
    synchronized (monitored) {
      if (monitored.probing) {
        return false;
      }
      monitored.probing = true;
      monitored.breaker.beginProbe();
    }
    probes.increment();
    begin(monitored.probeOperation, volume);
    RuntimeException fault = null;
    try {
      monitored.volume.probe.run();
    } catch (RuntimeException e) {
      fault = e;
    } catch (Throwable t) {
      // Without this thread the volume would never be used again.
      LOG.error("{}: the probe of {} threw", stage, monitored.volume.name, t);
      fault = new StoreException("a probe threw " + t, t);
    }
    // One found late was counted as failed, and the next one decides.
    if (end(monitored.probeOperation)) {
      probeEnded(volume, fault);
    }
    synchronized (monitored) {
      monitored.probing = false;
    }
    return true;
  }

  private void probeEnded(int volume, @Nullable RuntimeException fault) {
    if (fault != null) {
      probeFailures.increment();
    }
    Monitored monitored = volumes.get(volume);
    CircuitBreaker.Change change;
    synchronized (monitored) {
      change = monitored.breaker.endProbe(fault == null);
      apply(monitored, change, fault);
    }
    tell(volume, change, fault);
  }

  private void apply(
      Monitored monitored, CircuitBreaker.Change change, @Nullable RuntimeException fault) {
    switch (change) {
      case NONE -> {}
      case CLOSED -> {
        monitored.refusal = null;
        monitored.lastFault = null;
      }
      case OPENED ->
          monitored.refusal =
              new StoreException(
                  stage
                      + " does not use "
                      + monitored.volume.name
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

  private void tell(int volume, CircuitBreaker.Change change, @Nullable RuntimeException fault) {
    Monitored monitored = volumes.get(volume);
    switch (change) {
      case NONE -> {
        if (fault != null) {
          LOG.debug("{}: {} failed: {}", stage, monitored.volume.name, fault.getMessage());
        }
      }
      case CLOSED -> {
        LOG.info("{} uses {} again: a probe went well", stage, monitored.volume.name);
        onUp.accept(volume);
      }
      case OPENED -> {
        trips.increment();
        StoreException refusal = monitored.refusal;
        LOG.warn(
            "{}; look-ups there answer absent, loads and dumps are refused",
            refusal == null ? stage : refusal.getMessage());
        onDown.accept(volume);
      }
    }
  }

  private static double seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toMillis(nanos) / 1000.0;
  }

  /**
   * Begins no further probe, stops the search for late operations, and waits for the threads. A thread
   * whose probe hangs is left to end by itself.
   *
   * @param timeout how long to wait at the most
   * @return false when a thread still runs, or the caller was interrupted (its flag is set again)
   */
  public boolean close(Duration timeout) {
    volumes.forEach(monitored -> monitored.prober.stop());
    late.stop();
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      boolean ended = late.join(left(deadline));
      for (Monitored monitored : volumes) {
        ended &= monitored.prober.join(left(deadline));
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
