package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.ADDED;
import static ucm.server.protocol.Wire.As.HANDLE;

import java.util.List;

/**
 * PLAN: what a step of the engine takes, forgets and computes. Its answer is a {@link PlannedMessage}.
 *
 * @param step the engine's number for it
 * @param taken holds that are loaded
 * @param forgotten handles of requests that ended
 * @param scheduled requests of whose blocks some may be complete after the step
 * @param generated tokens that were generated, for those who save them
 */
// Packed on purpose, as in LookupMessage. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record PlanMessage(
    @Wire(HANDLE) int step,
    List<Taken> taken,
    List<Integer> forgotten,
    List<Scheduled> scheduled,
    @Wire(ADDED) List<Generated> generated) {

  /**
   * A hold whose first blocks are loaded.
   *
   * @param hold its number
   * @param blocks how many; the others are given back
   */
  public record Taken(long hold, int blocks) {}

  /**
   * A request's part in the step.
   *
   * @param handle the client's number for it
   * @param computedTokens tokens whose KV is there before the step, loaded ones included
   * @param newTokens tokens that the step computes
   */
  public record Scheduled(@Wire(HANDLE) int handle, int computedTokens, int newTokens) {}

  /**
   * Generated tokens of a request.
   *
   * @param handle the client's number for it
   * @param firstIndex index of the first of them among all of its tokens
   * @param tokens those that were not sent before
   */
  public record Generated(@Wire(HANDLE) int handle, int firstIndex, int[] tokens) {}

  /**
   * PLANNED: where the blocks that a step completes are to be copied.
   *
   * @param generation of the slots
   * @param saves one for each request of which blocks are saved, and for each group of a hybrid model
   * @param groups of a hybrid model, of which group each save is; else none
   */
  public record PlannedMessage(
      @Wire(HANDLE) int generation, List<Save> saves, @Wire(ADDED) List<Integer> groups) {

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
    public record Save(@Wire(HANDLE) int handle, long save, int firstBlock, int[] slots) {}
  }
}
