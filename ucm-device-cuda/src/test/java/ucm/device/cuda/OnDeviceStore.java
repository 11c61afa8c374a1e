package ucm.device.cuda;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.device.Device;

/** A store whose engine has its memory on the device: every transfer is handed in as its mirror. */
final class OnDeviceStore implements Store {

  private final SimulatedCuda cuda;
  private final Device device;
  private final Store store;

  OnDeviceStore(SimulatedCuda cuda, Device device, Store store) {
    this.cuda = cuda;
    this.device = device;
    this.store = store;
  }

  @Override
  public String name() {
    return store.name();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return store.configKeys();
  }

  @Override
  public void configure(StoreConfig config) {
    store.configure(config);
  }

  @Override
  public void open(StoreContext context) {
    store.open(context);
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    return store.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    return store.lookupPrefix(ids);
  }

  @Override
  public void prefetch(BlockIds ids) {
    store.prefetch(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    return move(transfer, true);
  }

  @Override
  public Task dump(Transfer transfer) {
    return move(transfer, false);
  }

  private Task move(Transfer transfer, boolean loads) {
    DeviceMirror mirror = new DeviceMirror(cuda, device, transfer, loads);
    try {
      Task task = loads ? store.load(mirror.transfer()) : store.dump(mirror.transfer());
      task.whenTerminal(mirror::free);
      return task;
    } catch (RuntimeException e) {
      mirror.free();
      throw e;
    }
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return store.flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return store.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return store.canRemove();
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return store.remove(ids);
  }

  @Override
  public void close() {
    store.close();
  }
}
