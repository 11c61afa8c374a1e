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

/** A stage that hands everything to the next one. */
@StoreName("Relay")
final class RelayStore implements Store {

  private final StoreLife life = new StoreLife("Relay");
  private @Nullable Store next;

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
    next = Objects.requireNonNull(context.backend(), "Relay needs a next stage");
  }

  private Store next() {
    life.requireOpen();
    return Objects.requireNonNull(next);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return next().lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return next().lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    next().prefetch(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return next().load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return next().dump(transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return next().flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return next().durable(ids);
  }

  @Override
  public boolean canRemove() {
    return next().canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return next().remove(ids);
  }

  @Override
  public void close() {
    life.closed();
  }
}
