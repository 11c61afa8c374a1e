package ucm.store.file.health;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.config.StoreKind;

/**
 * Whether the stage below a store of files may be used: a {@link Breaker} of its own, by the rules
 * of {@code store_health}. It is fed by calls that fail, by silence, which is when calls are under way and
 * nothing was answered for as long as a probe may take, and by probes while it is open.
 *
 * <p>With {@code store_health.enabled: false} the stage is never given up. Thread-safe.
 */
public final class StageHealth implements AutoCloseable {

  private static final int CHECKS_PER_TIMEOUT = 4;

  private final String what;
  private final LongSupplier clock;
  private final Breaker.Rules rules;
  private final Breaker breaker;
  // A probe that hangs holds one of two threads.
  private final TimeoutScheduler timer;
  private final AtomicInteger calls = new AtomicInteger();
  private volatile long answeredNanos;

  /**
   * The stage is taken for good; nothing is probed yet.
   *
   * @param what names the stage in messages
   * @param probe asks it something; throws when it does not work
   * @param onUp is called when it may be used again
   */
  public StageHealth(
      StoreKind kind,
      String what,
      FileStoreConfig.Health config,
      StoreMetrics metrics,
      LongSupplier clock,
      Runnable probe,
      Runnable onUp) {
    this.what = what;
    this.clock = clock;
    rules = Breaker.Rules.of(config);
    StoreMetrics own = rules.enabled() ? new KindMetrics(kind, metrics) : StoreMetrics.NONE;
    Breaker.Counters counters =
        new Breaker.Counters(
            own.counter("tier_health_trips", "Times that the next stage was given up"),
            own.counter("tier_health_probes", "Probes of the next stage begun"),
            own.counter("tier_health_probe_failures", "Probes of it that failed or were late"));
    Breaker made = new Breaker(kind.name(), what, rules, clock, probe, counters, () -> {}, onUp);
    breaker = made;
    own.gauge(
        "tier_health_state",
        "Breaker of the next stage: 0 closed, 1 half-open, 2 open",
        () -> made.state().number);
    timer = new TimeoutScheduler(kind, "tier-health", 2);
  }

  public void start() {
    if (rules.enabled()) {
      timer.every(rules.timeoutNanos() / CHECKS_PER_TIMEOUT, this::findSilence);
      timer.every(rules.intervalNanos(), this::probe);
    }
  }

  /** Why the stage must not be used now, or null when it may be. */
  public @Nullable StoreException refusal() {
    return breaker.refusal();
  }

  /** A call is about to be made, which {@link #ended} must follow. */
  public void begun() {
    if (calls.getAndIncrement() == 0) {
      answered();
    }
  }

  /** The stage has moved a shard, or answered otherwise. */
  public void answered() {
    answeredNanos = clock.getAsLong();
  }

  /** A call has ended, with a fault of the stage or null. */
  public void ended(@Nullable RuntimeException fault) {
    answered();
    calls.decrementAndGet();
    if (fault == null) {
      breaker.succeeded();
    } else {
      breaker.failed(fault);
    }
  }

  /** How long the stage may take for one answer. */
  public long patienceNanos() {
    return rules.enabled() ? rules.timeoutNanos() : Long.MAX_VALUE;
  }

  private void findSilence() {
    breaker.findLateProbe();
    if (calls.get() > 0 && clock.getAsLong() - answeredNanos >= rules.timeoutNanos()) {
      answered();
      breaker.failed(rules.late(what + " did not answer"));
    }
  }

  private void probe() {
    if (breaker.refusal() != null) {
      var _ = breaker.probe();
    }
  }

  /** Watches no more; a probe that hangs is left to end by itself. */
  @Override
  public void close() {
    timer.close();
  }
}
