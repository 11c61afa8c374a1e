package ucm.testkit;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * A last stage that ends every shard well before {@code load} or {@code dump} returns, and moves
 * nothing: what is measured is the upper stage. Takes no heap for a shard. A look-up finds the
 * blocks whose ids are even, so a stage that asks before it dumps moves the others. Thread-safe. A
 * test that wants a next stage of its own overrides what it wants otherwise.
 */
@StoreName("Prompt")
public class PromptStore implements Store, IndexLookup {

  private final AtomicLong tasks = new AtomicLong();
  private final boolean knows;

  /** A store that wants no settings, and must be asked what it has. */
  public PromptStore() {
    this(false);
  }

  /**
   * A store that wants no settings.
   *
   * @param knows whether it says by {@link #lookupKnown} what it has
   */
  public PromptStore(boolean knows) {
    this.knows = knows;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of();
  }

  @Override
  public void configure(StoreConfig config) {}

  @Override
  public void open(StoreContext context) {}

  @Override
  public BitSet lookup(BlockIds ids) {
    BitSet found = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, ids.low(i) % 2 == 0);
    }
    return found;
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    return knows ? lookup(ids) : null;
  }

  @Override
  public void prefetch(BlockIds ids) {}

  @Override
  public Task load(Transfer transfer) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      task.ok(shard);
    }
    return task;
  }

  @Override
  public Task dump(Transfer transfer) {
    return load(transfer);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return FlushResult.clean();
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return lookup(ids);
  }

  @Override
  public void close() {}
}
