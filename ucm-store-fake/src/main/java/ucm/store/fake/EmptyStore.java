package ucm.store.fake;

import java.util.BitSet;
import java.util.List;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.TransferTask;
import ucm.api.admin.Clearable;
import ucm.api.config.ConfigKey;

/**
 * Keeps nothing: a dump ends well at once and is forgotten, a look-up finds nothing, a load misses.
 * {@code Cache|Empty} is a cache in memory without storage.
 *
 * <p>It accepts blocks of any layout, in memory of any device. Nothing becomes durable, and {@link
 * #flush} has nothing to wait for.
 */
@StoreName("Empty")
public final class EmptyStore extends AbstractStore implements Clearable {

  /** A store that is not configured yet. */
  public EmptyStore() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of(CommonKeys.DEVICE_ID);
  }

  @Override
  protected boolean takesDeviceMemory() {
    return true;
  }

  @Override
  protected void doOpen(StoreContext context) {}

  @Override
  public void clear() {
    requireOpen();
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    return new BitSet();
  }

  @Override
  protected void doLoad(TransferTask task) {
    FakeStore.endAll(task, ShardOutcome.MISSING);
  }

  @Override
  protected void doDump(TransferTask task) {
    FakeStore.endAll(task, ShardOutcome.OK);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    return FakeStore.all(ids);
  }
}
