package ucm.bench.gpu;

import ucm.api.MemoryRegion;
import ucm.device.CopyWay;
import ucm.device.Device;
import ucm.device.DeviceStream;

/** Pinned memory and a stream of the driver for each direction. */
record StreamPath(String name, GpuMemory memory, Copies copies, DeviceStream down, DeviceStream up)
    implements GpuPath {

  /** Queues copies between the device's segments and the host. */
  private interface Copies {
    void queue(DeviceStream stream, MemoryRegion from, MemoryRegion to);
  }

  private StreamPath(String name, GpuMemory memory, Copies copies, Device device, CopyWay way) {
    this(name, memory, copies, device.stream(0, way), device.stream(0, way));
  }

  static StreamPath segments(Device device, CopyWay way, GpuMemory memory) {
    String name = way == CopyWay.BATCH ? "batch" : "calls";
    return new StreamPath(name, memory, memory::copySegments, device, way);
  }

  /** One copy of rows, as the segments lie at equal distances. */
  static StreamPath rows(Device device, GpuMemory memory) {
    return new StreamPath("rows", memory, memory::copyRows, device, CopyWay.CALLS);
  }

  @Override
  public void begin(Direction direction) {
    if (direction != Direction.UP) {
      copies.queue(down, memory.pattern, memory.target);
    }
    if (direction != Direction.DOWN) {
      copies.queue(up, memory.source, memory.back);
    }
  }

  @Override
  public void await() {
    down.awaitAll();
    up.awaitAll();
  }

  @Override
  public void verify(Direction direction) {
    if (direction != Direction.DOWN) {
      memory.verifyBack(name);
    }
    if (direction != Direction.UP) {
      memory.verifyTarget(name);
    }
  }

  @Override
  public void close() {
    down.close();
    up.close();
  }
}
