package ucm.platform.device;

import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.device.DeviceStream;

/**
 * Queues the copies of shards between slots and memory of a device, in as few calls as their layout
 * allows. A call costs the driver about a microsecond, in which a GPU's bus moves some 50 KiB; so
 *
 * <ul>
 *   <li>segments that touch each other on both sides become one copy;
 *   <li>segments of one size at equal distances become the rows of one copy.
 * </ul>
 *
 * <p>What is put in is held back until something does not fit on, or {@link #flush}. Hot path. Used by
 * one thread, that of the stream.
 */
public final class DeviceCopies {

  private final SlotMemory memory;
  private final DeviceStream stream;

  // What is held back; no rows when there is nothing.
  private @Nullable MemoryRegion device;
  private @Nullable MemoryRegion host;
  private boolean up;
  private long deviceAt;
  private long hostAt;
  private long rowBytes;
  private long devicePitch;
  private long hostPitch;
  private int rows;

  DeviceCopies(SlotMemory memory, DeviceStream stream) {
    this.memory = memory;
    this.stream = stream;
  }

  /** Gathers the segments of a shard into a slot, or scatters the slot over them. */
  public void add(Transfer transfer, int shard, int slot, boolean toSlot) {
    MemoryRegion region = memory.region();
    long at = memory.offset(slot);
    int segments = transfer.pieceCount();
    for (int segment = 0; segment < segments; segment++) {
      long size = transfer.pieceSize(segment);
      MemoryRegion engine = transfer.region(shard, segment);
      add(engine, transfer.offset(shard, segment), region, at, size, toSlot);
      at += size;
    }
  }

  /** Queues what is held back. */
  void flush() {
    int count = rows;
    MemoryRegion onDevice = device;
    MemoryRegion inHost = host;
    rows = 0;
    if (count == 0 || onDevice == null || inHost == null) {
      return;
    }
    if (count == 1 && up) {
      stream.copy(onDevice, deviceAt, inHost, hostAt, rowBytes);
    } else if (count == 1) {
      stream.copy(inHost, hostAt, onDevice, deviceAt, rowBytes);
    } else if (up) {
      stream.copyRows(onDevice, deviceAt, devicePitch, inHost, hostAt, hostPitch, rowBytes, count);
    } else {
      stream.copyRows(inHost, hostAt, hostPitch, onDevice, deviceAt, devicePitch, rowBytes, count);
    }
  }

  /** Forgets what is held back. */
  void clear() {
    rows = 0;
  }

  private void add(
      MemoryRegion onDevice, long from, MemoryRegion inHost, long to, long size, boolean toHost) {
    if (rows > 0 && onDevice == device && inHost == host && toHost == up) {
      if (rows == 1 && from == deviceAt + rowBytes && to == hostAt + rowBytes) {
        rowBytes += size;
        return;
      }
      if (size == rowBytes && isNextRow(from, to)) {
        rows++;
        return;
      }
    }
    flush();
    device = onDevice;
    host = inHost;
    up = toHost;
    deviceAt = from;
    hostAt = to;
    rowBytes = size;
    rows = 1;
  }

  private boolean isNextRow(long from, long to) {
    if (rows > 1) {
      return from == deviceAt + rows * devicePitch && to == hostAt + rows * hostPitch;
    }
    devicePitch = from - deviceAt;
    hostPitch = to - hostAt;
    return devicePitch >= rowBytes
        && devicePitch <= stream.maxPitch()
        && hostPitch >= rowBytes
        && hostPitch <= stream.maxPitch();
  }
}
