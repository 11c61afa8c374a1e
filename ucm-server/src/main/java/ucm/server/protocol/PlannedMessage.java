package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;

import java.util.List;

/**
 * PLANNED: where the blocks that a step completes are to be copied.
 *
 * @param generation of the slots
 * @param saves one for each request of which blocks are saved
 */
public record PlannedMessage(@Wire(HANDLE) int generation, List<Save> saves) {

  /** In place of a slot: the block is not saved. */
  public static final int NO_SLOT = -1;

  /**
   * Blocks of a request.
   *
   * @param handle the client's number of the request
   * @param save number of the save
   * @param firstBlock the first of them
   * @param slots one for each block, or {@link #NO_SLOT}
   */
  // Packed as in FoundMessage. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  public record Save(@Wire(HANDLE) int handle, long save, int firstBlock, int[] slots) {}
}
