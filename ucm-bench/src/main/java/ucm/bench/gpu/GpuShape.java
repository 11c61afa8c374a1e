package ucm.bench.gpu;

import java.util.List;
import ucm.api.BlockLayout;

/**
 * The memory of a layer, one shard a block.
 *
 * @param shardBytes bytes of a shard
 * @param segmentBytes bytes of each of its segments, which lie apart on the device; a power of two less
 */
public record GpuShape(long shardBytes, long segmentBytes) {

  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;
  // A segment of the engine's memory is followed by memory that is another block's.
  private static final long GAP_BYTES = 4096;

  /** Layers of 64 KiB to 4 MiB in one segment, keys and values apart, and many small segments. */
  public static final List<GpuShape> ALL =
      List.of(
          new GpuShape(64 * KIB, 64 * KIB),
          new GpuShape(256 * KIB, 256 * KIB),
          new GpuShape(MIB, MIB),
          new GpuShape(2 * MIB, 2 * MIB),
          new GpuShape(4 * MIB, 4 * MIB),
          new GpuShape(128 * KIB, 64 * KIB),
          new GpuShape(4 * MIB, 2 * MIB),
          new GpuShape(2 * MIB, 64 * KIB),
          new GpuShape(2 * MIB, 16 * KIB));

  BlockLayout layout() {
    return BlockLayout.uniform(segmentBytes, shardBytes, shardBytes);
  }

  int segments() {
    return Math.toIntExact(shardBytes / segmentBytes);
  }

  /** From one segment to the next on the device. */
  long stride() {
    return segmentBytes + (segments() == 1 ? 0 : GAP_BYTES);
  }

  public String text() {
    return segments() == 1
        ? size(shardBytes)
        : "%s in %s x %s".formatted(size(shardBytes), segments(), size(segmentBytes));
  }

  private static String size(long bytes) {
    return bytes >= MIB ? bytes / MIB + " MiB" : bytes / KIB + " KiB";
  }
}
