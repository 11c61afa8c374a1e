package ucm.store.file.config;

import java.util.function.DoubleSupplier;
import ucm.api.StoreMetrics;

/** Metrics whose names begin with the prefix of a kind of store. */
public record KindMetrics(StoreKind kind, StoreMetrics all) implements StoreMetrics {

  @Override
  public Counter counter(String name, String help) {
    return all.counter(kind.key(name), help);
  }

  @Override
  public Histogram histogram(String name, String help) {
    return all.histogram(kind.key(name), help);
  }

  @Override
  public void gauge(String name, String help, DoubleSupplier value) {
    all.gauge(kind.key(name), help, value);
  }
}
