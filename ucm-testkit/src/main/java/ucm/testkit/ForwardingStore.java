package ucm.testkit;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * A store that hands every call to another one; a test overrides what it wants otherwise. For a last
 * stage of a test's own, extend {@link PromptStore}.
 */
public abstract class ForwardingStore implements Store, IndexLookup, MemoryProvider {

  /** For subclasses. */
  protected ForwardingStore() {}

  /** The store that is called; asked for each call. */
  protected abstract Store inner();

  @Override
  public String name() {
    return inner().name();
  }

  @Override
  public boolean keepsBytes() {
    return inner().keepsBytes();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return inner().configKeys();
  }

  @Override
  public Map<String, Object> suggestions() {
    return inner().suggestions();
  }

  @Override
  public void configure(StoreConfig config) {
    inner().configure(config);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return inner().refuseNext(next);
  }

  @Override
  public void open(StoreContext context) {
    inner().open(context);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return inner().lookup(ids);
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    return inner() instanceof IndexLookup index ? index.lookupKnown(ids) : null;
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return inner().lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    inner().prefetch(ids);
  }

  @Override
  public void notePrompt(BlockIds ids) {
    inner().notePrompt(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return inner().load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return inner().dump(transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return inner().flush(timeout);
  }

  @Override
  public boolean hasRoom(long bytes) {
    return inner().hasRoom(bytes);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return inner().durable(ids);
  }

  @Override
  public boolean canRemove() {
    return inner().canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return inner().remove(ids);
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    return inner() instanceof MemoryProvider provider ? provider.offerMemory(byteSize) : null;
  }

  @Override
  public void close() {
    inner().close();
  }
}
