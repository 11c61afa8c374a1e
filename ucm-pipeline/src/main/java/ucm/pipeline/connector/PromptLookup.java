package ucm.pipeline.connector;

import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.ConnectorFaults;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.pipeline.hash.BlockHasher;

/**
 * A look-up that has begun. Any thread may ask the store, once, so that a thread with other work need not
 * wait for it: between {@link SchedulerConnector#beginLookup} and {@link SchedulerConnector#endLookup}.
 * Who asks in another thread hands the look-up there and back safely.
 */
public final class PromptLookup {

  /** As of a hybrid model with one group, whose blocks are those of the prompt. */
  private static final KvGroups KEPT_WHOLE =
      new KvGroups(1, List.of(new KvGroups.Group(KvGroups.Kind.ALL, 0, 1, 1)));

  /**
   * Who is asked. A block counts only when the part of every rank is there, which with MLA is one part.
   */
  record Ranks(
      Store store, BlockHasher hasher, int parts, KvGroups groups, ConnectorFaults faults) {}

  final RequestState state;
  final PromptRequest request;

  /** Of the whole prompt; those on the device are not asked for. */
  final BlockIds ids;

  /** Whether it is the first one of its request. */
  final boolean first;

  final StageLookups.Sums before;

  /** Null when there is nothing to ask. */
  private final @Nullable Ranks ranks;

  private final int from;
  private final int mostEnd;
  private int found;
  private int stored;
  private boolean failed;

  PromptLookup(
      RequestState state,
      PromptRequest request,
      BlockIds ids,
      boolean first,
      StageLookups.Sums before,
      @Nullable Ranks ranks,
      int mostEnd) {
    this.state = state;
    this.request = request;
    this.ids = ids;
    this.first = first;
    this.before = before;
    this.ranks = ranks;
    this.mostEnd = mostEnd;
    from = Math.min(state.hbmBlocks, ids.size());
  }

  /** Asks the store; blocks for as long as the store does. */
  public void askStore() {
    if (ranks == null || from >= ids.size()) {
      return;
    }
    boolean isOne = ranks.groups.isOne();
    KvGroups groups = isOne ? KEPT_WHOLE : ranks.groups;
    try {
      GroupLookup lookup =
          new GroupLookup(ranks.store, ranks.hasher, ranks.parts, groups, ids, from);
      stored = lookup.stored();
      found = (isOne ? stored : lookup.end(Math.min(stored, mostEnd))) - from;
    } catch (RuntimeException e) {
      ranks.faults.record("a look-up failed, so nothing is loaded and the engine computes", e);
      failed = true;
    }
  }

  /**
   * Up to which block of the prompt the store has what is kept of every block. With {@link KvGroups} less
   * may be found, as a hit cannot end everywhere.
   */
  public int storedBlocks() {
    return stored;
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
