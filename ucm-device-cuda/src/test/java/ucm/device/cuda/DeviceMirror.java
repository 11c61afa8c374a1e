package ucm.device.cuda;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Transfer;
import ucm.device.Device;
import ucm.testkit.TransferMemory;

/**
 * A transfer of host memory as one of device memory: each region has a copy on the device, with the same
 * bytes at first. What a load brings to the device is copied back, shard by shard, with the guard bytes
 * around it.
 */
final class DeviceMirror implements ShardListener {

  private final SimulatedCuda cuda;
  private final Device device;
  private final Transfer original;
  private final boolean loads;
  private final Map<MemoryRegion, MemoryRegion> mirrors = new HashMap<>();
  private final Transfer mirrored;

  DeviceMirror(SimulatedCuda cuda, Device device, Transfer original, boolean loads) {
    this(cuda, device, original, loads, 0);
  }

  DeviceMirror(SimulatedCuda cuda, Device device, Transfer original, boolean loads, long event) {
    this.cuda = cuda;
    this.device = device;
    this.original = original;
    this.loads = loads;
    Transfer.Builder builder =
        original.pieceCount() == 1
            ? Transfer.packed(original.layout())
            : Transfer.scattered(original.layout());
    for (int shard = 0; shard < original.shardCount(); shard++) {
      builder.shard(original.ids(), shard, original.shardIndex(shard));
      for (int segment = 0; segment < original.pieceCount(); segment++) {
        builder.piece(mirror(original.region(shard, segment)), original.offset(shard, segment));
      }
    }
    this.mirrored = builder.after(event).build(this);
  }

  /** What the store is given. */
  Transfer transfer() {
    return mirrored;
  }

  /** The bytes on the device that stand for a region. */
  MemorySegment bytes(MemoryRegion region) {
    return cuda.bytes(mirrors.get(region));
  }

  /** Frees the memory of the device; the driver complains when a copy is still to come. */
  void free() {
    mirrors.values().forEach(device::free);
  }

  @Override
  public void shardEnded(Transfer transfer, int shard, ShardOutcome outcome) {
    if (loads && outcome == ShardOutcome.OK) {
      for (int segment = 0; segment < original.pieceCount(); segment++) {
        MemoryRegion region = original.region(shard, segment);
        long at = original.offset(shard, segment);
        long from = Math.max(0, at - TransferMemory.GUARD_BYTES);
        long size =
            Math.min(
                region.byteSize(), at + original.pieceSize(segment) + TransferMemory.GUARD_BYTES);
        MemorySegment.copy(bytes(region), from, region.segment(), from, size - from);
      }
    }
    original.listener().shardEnded(original, shard, outcome);
  }

  private MemoryRegion mirror(MemoryRegion region) {
    return mirrors.computeIfAbsent(
        region,
        host -> {
          MemoryRegion memory = device.allocate(host.byteSize());
          cuda.bytes(memory).copyFrom(host.segment());
          return memory;
        });
  }
}
