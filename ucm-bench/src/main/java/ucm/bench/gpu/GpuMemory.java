package ucm.bench.gpu;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import ucm.api.MemoryRegion;
import ucm.cli.runtime.EngineMemory.WrongBytesException;
import ucm.device.CopyWay;
import ucm.device.Device;
import ucm.device.DeviceStream;

/**
 * What is copied in a round: a pattern in pinned host memory, and the same in the segments of the {@code
 * source} on the device. Beside it, room for one plain copy each way. Used by the thread that made it.
 */
final class GpuMemory implements AutoCloseable {

  final GpuShape shape;
  final int shards;
  final MemoryRegion pattern;
  final MemoryRegion source;
  final MemoryRegion target;
  final MemoryRegion back;

  private final Device device;
  private final DeviceStream down;
  private final DeviceStream up;
  private final MemoryRegion plainOnDevice;
  private final MemoryRegion plainOnHost;
  private final List<MemoryRegion> owned = new ArrayList<>();

  GpuMemory(Device device, GpuShape shape, long bytes) {
    this.device = device;
    this.shape = shape;
    shards = Math.toIntExact(bytes / shape.shardBytes());
    down = device.stream(0, CopyWay.CALLS);
    up = device.stream(0, CopyWay.CALLS);
    try {
      long scattered = segments() * shape.stride();
      source = own(device.allocate(scattered));
      target = own(device.allocate(scattered));
      plainOnDevice = own(device.allocate(byteSize()));
      pattern = own(device.allocatePinned(byteSize()));
      back = own(device.allocatePinned(byteSize()));
      plainOnHost = own(device.allocatePinned(byteSize()));
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private MemoryRegion own(MemoryRegion region) {
    owned.add(region);
    return region;
  }

  int segments() {
    return shards * shape.segments();
  }

  /** Bytes that a copy in one direction moves. */
  long byteSize() {
    return shards * shape.shardBytes();
  }

  /** Another pattern in the host's memory and in the source. */
  void fill(int round) {
    MemorySegment memory = pattern.segment();
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      memory.set(ValueLayout.JAVA_LONG, at, (at + round) * 0x9E3779B97F4A7C15L);
    }
    copySegments(down, pattern, source);
    down.awaitAll();
  }

  /** One plain pinned copy of as many bytes in each direction that is asked for; the nanoseconds it took. */
  long plain(Direction direction) {
    long start = System.nanoTime();
    if (direction != Direction.UP) {
      down.copy(pattern, 0, plainOnDevice, 0, byteSize());
    }
    if (direction != Direction.DOWN) {
      up.copy(source, 0, plainOnHost, 0, byteSize());
    }
    down.awaitAll();
    up.awaitAll();
    return System.nanoTime() - start;
  }

  void verifyTarget(String way) {
    back.segment().fill((byte) 0);
    copySegments(up, target, back);
    up.awaitAll();
    verifyBack(way);
  }

  void verifyBack(String way) {
    long wrong = pattern.segment().mismatch(back.segment());
    if (wrong >= 0) {
      throw new WrongBytesException(
          String.format(
              "shape %s, way %s: byte %s of shard %s came back wrong from the GPU; nothing else"
                  + " here is to be trusted",
              shape.text(), way, wrong % shape.shardBytes(), wrong / shape.shardBytes()));
    }
  }

  /** Queues a copy for each segment between the device, where they lie apart, and the host. */
  void copySegments(DeviceStream stream, MemoryRegion from, MemoryRegion to) {
    long size = shape.segmentBytes();
    for (int i = 0; i < segments(); i++) {
      stream.copy(from, i * stride(from), to, i * stride(to), size);
    }
  }

  /** Queues the same copy as one of rows. */
  void copyRows(DeviceStream stream, MemoryRegion from, MemoryRegion to) {
    long size = shape.segmentBytes();
    stream.copyRows(from, 0, stride(from), to, 0, stride(to), size, segments());
  }

  private long stride(MemoryRegion region) {
    return region.isHost() ? shape.segmentBytes() : shape.stride();
  }

  @Override
  public void close() {
    down.close();
    up.close();
    owned.forEach(device::free);
  }
}
