package ucm.pipeline.connector.statistics;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.platform.fault.RecentFaults;

/**
 * What went wrong without the engine being disturbed: everything is counted, and each kind is logged
 * as {@link RecentFaults} says. Thread-safe.
 */
public final class ConnectorFaults {

  private static final Logger LOG = LoggerFactory.getLogger(ConnectorFaults.class);

  private final String owner;
  private final StoreMetrics.Counter counter;
  private final RecentFaults recent = new RecentFaults(System::nanoTime);

  /** No faults yet of an owner, a side of an engine, as the log calls it. */
  public ConnectorFaults(String owner, StoreMetrics metrics) {
    this.owner = owner;
    this.counter =
        metrics.counter(
            "connector_faults", "Calls of stores that failed; the engine computed instead.");
  }

  /** Counts a fault; {@code what} says what was tried, and what is done instead. */
  public void record(String what, Throwable fault) {
    record(what + ": " + fault.getMessage(), what + RecentFaults.kind(fault));
  }

  /**
   * Counts a fault.
   *
   * @param message what is logged the first time
   * @param kind of which one is logged
   */
  public void record(String message, String kind) {
    counter.increment();
    if (recent.isNews(kind)) {
      LOG.warn("{}: {} (from now on counted in connector_faults)", owner, message);
    }
  }
}
