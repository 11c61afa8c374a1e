package ucm.store.file.health;

import java.util.Objects;
import ucm.store.file.LocalFileStore;

/** Where tests drive the circuit breakers of a store by hand. */
public final class Monitors {

  private Monitors() {}

  /** The monitor of an open store, whose {@code store_health} is enabled. */
  public static HealthMonitor of(LocalFileStore store) {
    return Objects.requireNonNull(store.health().monitor);
  }
}
