package ucm.server.protocol;

/**
 * LEASED: where blocks can be read.
 *
 * @param hold number of the hold, 0 without one
 * @param found how many of the first blocks are there; more than slots when slots are short
 * @param slots one for each of the first blocks
 */
// Packed on purpose: hundreds of numbers are no objects. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record LeasedMessage(long hold, int found, int[] slots) {

  /** That nothing can be read. */
  public static final LeasedMessage NOTHING = new LeasedMessage(0, 0, new int[0]);
}
