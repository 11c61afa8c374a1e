package ucm.server.protocol;

import java.util.Arrays;

/**
 * RESERVED: where blocks can be written.
 *
 * @param save number of the save, 0 when no block has a slot
 * @param slots one for each block, {@link PlannedMessage#NO_SLOT}, or {@link #STORED}
 */
// Packed as in LeasedMessage. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record ReservedMessage(long save, int[] slots) {

  /** In place of a slot: the block is stored already. */
  public static final int STORED = -2;

  /** That no block can be written. */
  public static ReservedMessage nothing(int blocks) {
    int[] slots = new int[blocks];
    Arrays.fill(slots, PlannedMessage.NO_SLOT);
    return new ReservedMessage(0, slots);
  }
}
