package ucm.pipeline.connector;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.StageLookups;

/**
 * A look-up that has begun. Any thread may ask the store, once, so that a thread with other work need not
 * wait for it: between {@link SchedulerConnector#beginLookup} and {@link SchedulerConnector#endLookup}.
 * Who asks in another thread hands the look-up there and back safely.
 */
public final class PromptLookup {

  final RequestState state;
  final PromptRequest request;
  final BlockIds ids;

  /** Whether it is the first one of its request. */
  final boolean first;

  final StageLookups.Sums before;
  private final @Nullable RankLookup lookup;
  private final int from;
  private int found;
  private boolean failed;

  /**
   * Asks nothing yet.
   *
   * @param ids of the whole prompt, of which those on the device are not asked for
   * @param lookup null when there is nothing to ask
   */
  PromptLookup(
      RequestState state,
      PromptRequest request,
      BlockIds ids,
      boolean first,
      StageLookups.Sums before,
      @Nullable RankLookup lookup) {
    this.state = state;
    this.request = request;
    this.ids = ids;
    this.first = first;
    this.before = before;
    this.lookup = lookup;
    from = Math.min(state.hbmBlocks, ids.size());
  }

  /** Asks the store; blocks for as long as the store does. */
  public void askStore() {
    if (lookup != null && from < ids.size()) {
      int run = lookup.run(ids.slice(from, ids.size()));
      failed = run < 0;
      found = Math.max(0, run);
    }
  }

  /** Says what was found without the store. */
  void found(int blocks) {
    found = blocks;
  }

  int onDevice() {
    return from;
  }

  /** Blocks found, from the first one on that is not on the device. */
  int found() {
    return found;
  }

  boolean failed() {
    return failed;
  }
}
