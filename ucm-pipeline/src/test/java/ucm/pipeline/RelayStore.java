package ucm.pipeline;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.testkit.ForwardingStore;

/** A stage that hands everything to the next one. */
@StoreName("Relay")
final class RelayStore extends ForwardingStore {

  private final StoreLife life = new StoreLife("Relay");
  private @Nullable Store next;

  @Override
  public String name() {
    return "Relay";
  }

  @Override
  public boolean keepsBytes() {
    return true;
  }

  @Override
  public Map<String, Object> suggestions() {
    return Map.of();
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store below) {
    return Optional.empty();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of();
  }

  @Override
  public void configure(StoreConfig config) {
    life.configured();
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    next = Objects.requireNonNull(context.next(), "Relay needs a next stage");
  }

  @Override
  protected Store inner() {
    life.requireOpen();
    return Objects.requireNonNull(next);
  }

  @Override
  public void close() {
    life.closed();
  }
}
