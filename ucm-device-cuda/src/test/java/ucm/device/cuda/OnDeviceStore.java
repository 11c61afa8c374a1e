package ucm.device.cuda;

import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.device.Device;
import ucm.testkit.ForwardingStore;

/** A store whose engine has its memory on the device: every transfer is handed in as its mirror. */
final class OnDeviceStore extends ForwardingStore {

  private final SimulatedCuda cuda;
  private final Device device;
  private final Store store;

  OnDeviceStore(SimulatedCuda cuda, Device device, Store store) {
    this.cuda = cuda;
    this.device = device;
    this.store = store;
  }

  @Override
  protected Store inner() {
    return store;
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
}
