package ucm.server.protocol;

import java.util.ArrayList;
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
    int step,
    List<Taken> taken,
    List<Integer> forgotten,
    List<Scheduled> scheduled,
    List<Generated> generated) {

  private static final int TAKEN_BYTES = 12;
  private static final int SCHEDULED_BYTES = 12;
  private static final int GENERATED_BYTES = 12;

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
  public record Scheduled(int handle, int computedTokens, int newTokens) {}

  /**
   * Generated tokens of a request.
   *
   * @param handle the client's number for it
   * @param firstIndex index of the first of them among all of its tokens
   * @param tokens those that were not sent before
   */
  // Packed as in LookupMessage. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  public record Generated(int handle, int firstIndex, int[] tokens) {}

  /** Reads it. */
  public static PlanMessage read(FrameReader body) throws ProtocolException {
    int step = body.handle();
    int takenCount = body.count(TAKEN_BYTES);
    List<Taken> taken = new ArrayList<>(takenCount);
    for (int i = 0; i < takenCount; i++) {
      taken.add(new Taken(body.u64(), body.u32()));
    }
    List<Integer> forgotten = new ArrayList<>();
    for (int handle : body.ints()) {
      forgotten.add(handle);
    }
    int scheduledCount = body.count(SCHEDULED_BYTES);
    List<Scheduled> scheduled = new ArrayList<>(scheduledCount);
    for (int i = 0; i < scheduledCount; i++) {
      scheduled.add(new Scheduled(body.handle(), body.u32(), body.u32()));
    }
    int generatedCount = body.hasMore() ? body.count(GENERATED_BYTES) : 0;
    List<Generated> generated = new ArrayList<>(generatedCount);
    for (int i = 0; i < generatedCount; i++) {
      generated.add(new Generated(body.handle(), body.u32(), body.ints()));
    }
    return new PlanMessage(step, taken, forgotten, scheduled, generated);
  }

  /** Writes it. */
  public FrameWriter write(FrameWriter to) {
    to.u32(step).u32(taken.size());
    taken.forEach(one -> to.u64(one.hold).u32(one.blocks));
    to.ints(forgotten.stream().mapToInt(Integer::intValue).toArray()).u32(scheduled.size());
    scheduled.forEach(one -> to.u32(one.handle).u32(one.computedTokens).u32(one.newTokens));
    to.u32(generated.size());
    generated.forEach(one -> to.u32(one.handle).u32(one.firstIndex).ints(one.tokens));
    return to;
  }
}
