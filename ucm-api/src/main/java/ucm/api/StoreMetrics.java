package ucm.api;

import java.util.function.DoubleSupplier;

/**
 * Where a store counts what it does. Instruments are asked for once, while the store opens, and used
 * from any thread; using one costs no allocation.
 *
 * <p>Names are lower case with underscores and begin with the stage, for example {@code
 * posix_load_bytes}; a name says its unit. Asking twice for one name gives the same instrument.
 */
public interface StoreMetrics {

  /** Counts nothing. */
  StoreMetrics NONE =
      new StoreMetrics() {
        @Override
        public Counter counter(String name, String help) {
          return amount -> {};
        }

        @Override
        public Histogram histogram(String name, String help) {
          return value -> {};
        }

        @Override
        public void gauge(String name, String help, DoubleSupplier value) {}
      };

  /** A number that only grows. */
  @FunctionalInterface
  interface Counter {

    /** Adds; {@code amount} is 0 or more. */
    void add(long amount);

    /** Adds one. */
    default void increment() {
      add(1);
    }
  }

  /** A distribution of values. */
  @FunctionalInterface
  interface Histogram {

    /** Records one value, in the unit its name says. */
    void record(double value);
  }

  /** A counter. */
  Counter counter(String name, String help);

  /** A histogram. */
  Histogram histogram(String name, String help);

  /**
   * A gauge, read on demand.
   *
   * @param value gives the value now; called from any thread, must not block
   */
  void gauge(String name, String help, DoubleSupplier value);
}
