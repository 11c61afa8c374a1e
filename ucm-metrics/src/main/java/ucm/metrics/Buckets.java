package ucm.metrics;

/**
 * Upper bounds of histogram buckets for names that the configuration does not list: by the end of the
 * name, which says the unit.
 */
final class Buckets {

  private static final double[] MILLIS = {
    0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000
  };
  private static final double[] GB_PER_SECOND = {
    0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128
  };
  private static final double[] SHARES = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  private static final double[] COUNTS = {
    0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000
  };

  private Buckets() {}

  static double[] of(String name) {
    if (name.endsWith("_ms") || name.endsWith("_duration")) {
      return MILLIS;
    }
    if (name.endsWith("_gbps") || name.endsWith("_speed")) {
      return GB_PER_SECOND;
    }
    return name.endsWith("_rates") ? SHARES : COUNTS;
  }
}
