package ucm.example.hello;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/** Keeps each block in a file. The life of the store; what it does is in {@link HelloRuntime}. */
@StoreName("Hello")
public final class HelloStore implements Store {

  private final StoreLife life = new StoreLife("Hello");
  private Optional<HelloConfig> config = Optional.empty();
  private volatile HelloRuntime open;

  /** Does nothing, as the contract says. */
  public HelloStore() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return HelloConfig.KEYS;
  }

  @Override
  public void configure(StoreConfig values) {
    life.configured();
    config = HelloConfig.from(values);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return next == null
        ? Optional.empty()
        : Optional.of("Hello is a last stage and takes no next stage; found " + next.name());
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    try {
      Optional<String> refusal = refuseNext(context.next());
      if (refusal.isPresent()) {
        throw new StoreException(refusal.get());
      }
      open = new HelloRuntime(config.orElseThrow(), context, life);
    } catch (StoreException e) {
      life.closed();
      throw e;
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return opened().lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return opened().lookupPrefix(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return opened().start(transfer, true);
  }

  @Override
  public Task dump(Transfer transfer) {
    return opened().start(transfer, false);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return opened().flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return opened().lookup(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return opened().remove(ids);
  }

  @Override
  public synchronized void close() {
    if (life.closed() && open != null) {
      open.close();
    }
  }

  private HelloRuntime opened() {
    life.requireOpen();
    return open;
  }
}
