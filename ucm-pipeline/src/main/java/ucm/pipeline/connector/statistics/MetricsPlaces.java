package ucm.pipeline.connector.statistics;

import ucm.api.StoreMetrics;

/**
 * Gives each part of an engine its place to count. A registry that knows labels tells them apart;
 * {@code ucm.metrics.MetricsRegistry::place} is one.
 */
@FunctionalInterface
public interface MetricsPlaces {

  /**
   * The place of one part.
   *
   * @param model the name of the engine's model
   * @param worker a rank, or {@code scheduler}
   */
  StoreMetrics place(String model, String worker);
}
