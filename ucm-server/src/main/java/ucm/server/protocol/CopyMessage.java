package ucm.server.protocol;

/**
 * COPY: the daemon is to copy between slots and blocks of a KV cache on a device.
 *
 * @param save from the KV cache into slots; false for the other way
 * @param firstLayer the first of the layers
 * @param layers how many
 * @param slots slot numbers
 * @param blocks for each slot, the engine's number of the block
 */
// Packed on purpose: hundreds of numbers are no objects. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record CopyMessage(boolean save, int firstLayer, int layers, int[] slots, int[] blocks) {

  /** Reads it. */
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
