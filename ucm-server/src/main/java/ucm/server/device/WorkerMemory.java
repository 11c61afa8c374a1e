package ucm.server.device;

import java.util.ArrayList;
import java.util.List;
import ucm.api.MemoryRegion;
import ucm.device.Device;
import ucm.device.DeviceException;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.protocol.DeviceFields;

/** A worker's KV cache, opened in this process: where each block of each tensor lies. Immutable but for its end. */
final class WorkerMemory implements AutoCloseable {

  /** One tensor; see {@link DeviceFields.Tensor}. */
  record Tensor(MemoryRegion region, long offset, long stride, long blockBytes) {

    long offsetOf(int block) {
      return offset + block * stride;
    }
  }

  private final Device device;
  private final List<MemoryRegion> regions = new ArrayList<>();
  private final List<List<Tensor>> layers = new ArrayList<>();
  private final DeviceFields fields;

  /**
   * Opens what a worker has exported.
   *
   * @throws DeviceException when the driver refuses, or tensors do not lie where they are said to
   */
  WorkerMemory(Device device, DeviceFields fields, KvLayout layout) {
    this.device = device;
    this.fields = fields;
    try {
      for (DeviceFields.Allocation allocation : fields.allocations()) {
        regions.add(device.openShared(allocation.handle(), allocation.bytes()));
      }
      for (int layer = 0; layer < layout.layers(); layer++) {
        List<Tensor> tensors = new ArrayList<>();
        for (int i = 0; i < layout.tensors(layer); i++) {
          tensors.add(tensor(fields.layers().get(layer).get(i), layout.tensorBytes(layer, i)));
        }
        layers.add(tensors);
      }
      DeviceFields.Probe probe = fields.probe();
      require(probe.allocation(), probe.offset(), probe.written().length);
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private Tensor tensor(DeviceFields.Tensor said, long blockBytes) {
    long most = (Long.MAX_VALUE - blockBytes) / Math.max(1, fields.blocks());
    if (said.stride() < blockBytes || said.stride() > most || fields.blocks() < 1) {
      throw new DeviceException(
          "%s blocks of %s bytes cannot lie %s bytes apart"
              .formatted(fields.blocks(), blockBytes, said.stride()));
    }
    require(said.allocation(), said.offset(), (fields.blocks() - 1) * said.stride() + blockBytes);
    return new Tensor(regions.get(said.allocation()), said.offset(), said.stride(), blockBytes);
  }

  private void require(int allocation, long offset, long bytes) {
    if (allocation >= regions.size()
        || offset < 0
        || bytes > regions.get(allocation).byteSize()
        || offset > regions.get(allocation).byteSize() - bytes) {
      throw new DeviceException(
          "%s bytes from %s on are not in allocation %s of the worker's %s"
              .formatted(bytes, offset, allocation, regions.size()));
    }
  }

  Device device() {
    return device;
  }

  int blocks() {
    return fields.blocks();
  }

  List<List<Tensor>> layers() {
    return layers;
  }

  DeviceFields.Probe probe() {
    return fields.probe();
  }

  /** The allocation that the probe is in. */
  MemoryRegion probeRegion() {
    return regions.get(fields.probe().allocation());
  }

  /** Lets the memory go, of which no copy may be under way. */
  @Override
  public void close() {
    regions.forEach(device::free);
    regions.clear();
  }
}
