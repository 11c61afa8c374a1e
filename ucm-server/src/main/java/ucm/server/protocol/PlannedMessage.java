package ucm.server.protocol;

import java.util.ArrayList;
import java.util.List;

/**
 * PLANNED: where the blocks that a step completes are to be copied.
 *
 * @param generation of the slots
 * @param saves one for each request of which blocks are saved
 */
public record PlannedMessage(int generation, List<Save> saves) {

  /** In place of a slot: the block is not saved. */
  public static final int NO_SLOT = -1;

  private static final int SAVE_BYTES = 20;

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
  public record Save(int handle, long save, int firstBlock, int[] slots) {}

  /** Reads it. */
  public static PlannedMessage read(FrameReader body) throws ProtocolException {
    int generation = body.handle();
    int count = body.count(SAVE_BYTES);
    List<Save> saves = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      saves.add(new Save(body.handle(), body.u64(), body.u32(), body.ints()));
    }
    return new PlannedMessage(generation, saves);
  }

  /** Writes it. */
  public FrameWriter write(FrameWriter to) {
    to.u32(generation).u32(saves.size());
    for (Save save : saves) {
      to.u32(save.handle).u64(save.save).u32(save.firstBlock).ints(save.slots);
    }
    return to;
  }
}
