package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.ADDED;
import static ucm.server.protocol.Wire.As.HANDLE;

import java.util.List;

/**
 * PLAN: what a step of the engine takes, forgets and computes.
 *
 * @param step the engine's number for it
 * @param taken holds that are loaded
 * @param forgotten handles of requests that ended
 * @param scheduled requests of whose blocks some may be complete after the step
 * @param generated tokens that were generated, for those who save them
 */
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
  // Packed as in LookupMessage. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  public record Generated(@Wire(HANDLE) int handle, int firstIndex, int[] tokens) {}
}
