package ucm.pipeline;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/** A stage that hands everything to the one behind it. */
@StoreName("Relay")
final class RelayStore implements Store {

  private final StoreLife life = new StoreLife("Relay");
  private @Nullable Store backend;

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
    backend = Objects.requireNonNull(context.backend(), "Relay needs a stage behind it");
  }

  private Store behind() {
    life.requireOpen();
    return Objects.requireNonNull(backend);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return behind().lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return behind().lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    behind().prefetch(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return behind().load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return behind().dump(transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return behind().flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return behind().durable(ids);
  }

  @Override
  public boolean canRemove() {
    return behind().canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return behind().remove(ids);
  }

  @Override
  public void close() {
    life.closed();
  }
}
