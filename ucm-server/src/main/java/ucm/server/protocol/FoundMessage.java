package ucm.server.protocol;

/**
 * FOUND: what of a prompt can be loaded.
 *
 * @param handle the client's number for the request
 * @param tokens that can be loaded beyond those computed
 * @param hold number of the hold, 0 without one
 * @param generation of the slots
 * @param slots one for each block that is held
 * @param promptBlocks full blocks of the prompt
 * @param foundBlocks those found outside of the device
 */
// Packed on purpose: hundreds of numbers are no objects. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record FoundMessage(
    int handle,
    int tokens,
    long hold,
    int generation,
    int[] slots,
    int promptBlocks,
    int foundBlocks) {

  private static final int[] NO_SLOTS = {};

  /** That nothing can be loaded. */
  public static FoundMessage nothing(
      int handle, int generation, int promptBlocks, int foundBlocks) {
    return new FoundMessage(handle, 0, 0, generation, NO_SLOTS, promptBlocks, foundBlocks);
  }

  /** Reads it. */
  public static FoundMessage read(FrameReader body) throws ProtocolException {
    return new FoundMessage(
        body.handle(), body.u32(), body.u64(), body.handle(), body.ints(), body.u32(), body.u32());
  }

  /** Writes it. */
  public FrameWriter write(FrameWriter to) {
    return to.u32(handle)
        .u32(tokens)
        .u64(hold)
        .u32(generation)
        .ints(slots)
        .u32(promptBlocks)
        .u32(foundBlocks);
  }
}
