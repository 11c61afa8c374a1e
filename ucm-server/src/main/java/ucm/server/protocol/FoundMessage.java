package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;

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
    @Wire(HANDLE) int handle,
    int tokens,
    long hold,
    @Wire(HANDLE) int generation,
    int[] slots,
    int promptBlocks,
    int foundBlocks) {

  private static final int[] NO_SLOTS = {};

  /** That nothing can be loaded. */
  public static FoundMessage nothing(
      int handle, int generation, int promptBlocks, int foundBlocks) {
    return new FoundMessage(handle, 0, 0, generation, NO_SLOTS, promptBlocks, foundBlocks);
  }
}
