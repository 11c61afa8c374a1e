package ucm.server.protocol;

import java.util.ArrayList;
import java.util.List;

/**
 * What OPEN_WORKER says of a KV cache in memory of a device that the daemon may copy by itself.
 *
 * @param uuid names the device in all processes: 32 hexadecimal digits
 * @param allocations the memory that the KV cache lies in, and the probe
 * @param blocks how many blocks the KV cache has
 * @param layers the tensors of each layer, in the order of the layout
 * @param probe memory of the device by which both sides find out whether they see the same
 */
// Packed on purpose, as in LookupMessage. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record DeviceFields(
    String uuid, List<Allocation> allocations, int blocks, List<List<Tensor>> layers, Probe probe) {

  /** What does not depend on the layout. */
  record Place(String uuid, List<Allocation> allocations, int blocks) {}

  /**
   * An allocation that the engine has exported.
   *
   * @param handle the driver's handle of it
   * @param bytes its size
   */
  public record Allocation(byte[] handle, long bytes) {}

  /**
   * One tensor: its block b begins at {@code offset + b * stride} of an allocation.
   *
   * @param allocation index of the allocation
   * @param offset of block 0, in bytes
   * @param stride from one block to the next, in bytes
   */
  public record Tensor(int allocation, long offset, long stride) {}

  /**
   * Some bytes of the device.
   *
   * @param allocation index of the allocation
   * @param offset where they are
   * @param written what the worker has written there; the daemon writes each bit the other way round
   */
  public record Probe(int allocation, long offset, byte[] written) {}

  /**
   * Reads them.
   *
   * @param layout how many tensors each layer has
   */
  static DeviceFields read(FrameReader body, int[] layout) throws ProtocolException {
    Place place = body.record(Place.class);
    List<List<Tensor>> layers = new ArrayList<>(layout.length);
    for (int tensors : layout) {
      List<Tensor> layer = new ArrayList<>(tensors);
      for (int i = 0; i < tensors; i++) {
        layer.add(body.record(Tensor.class));
      }
      layers.add(layer);
    }
    Probe probe = body.record(Probe.class);
    return new DeviceFields(place.uuid, place.allocations, place.blocks, layers, probe);
  }

  /**
   * COPY: the daemon is to copy between slots and blocks of a KV cache on a device.
   *
   * @param save from the KV cache into slots; false for the other way
   * @param firstLayer the first of the layers
   * @param layers how many
   * @param slots slot numbers
   * @param blocks for each slot, the engine's number of the block
   */
  public record CopyMessage(boolean save, int firstLayer, int layers, int[] slots, int[] blocks) {

    public static CopyMessage read(FrameReader body) throws ProtocolException {
      CopyMessage message = body.record(CopyMessage.class);
      if (message.slots.length != message.blocks.length) {
        throw ProtocolException.bad(
            "%s slots are to be copied, and %s blocks"
                .formatted(message.slots.length, message.blocks.length));
      }
      return message;
    }
  }
}
