package ucm.pipeline.connector.statistics;

import ucm.api.StoreMetrics;

/**
 * Gives each part of an engine its scope to count. A registry that knows labels tells them apart;
 * {@code ucm.metrics.MetricsRegistry::scope} is one.
 */
@FunctionalInterface
public interface MetricsScopes {

  /**
   * The scope of one part.
   *
   * @param model the name of the engine's model
   * @param worker a rank, or {@code scheduler}
   */
  StoreMetrics scope(String model, String worker);
}
