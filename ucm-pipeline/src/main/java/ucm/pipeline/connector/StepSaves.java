package ucm.pipeline.connector;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;

/**
 * The saves of one step: all blocks at its end, or each layer as it is computed.
 *
 * <p>What was computed from a block that could not be loaded is garbage and must not be stored. A
 * request is left out when one of the blocks it was computed from is bad, and what it computed is
 * then bad too, for those requests of the step that share it. With several ranks a load that failed
 * on one spoils what all compute, and the others learn of it at the end of the step: requests that
 * depend on a load of the same step are then saved at its end only. Used by one thread.
 */
final class StepSaves {

  /** A request with the ids under which this rank saves its blocks. */
  private record Save(RequestPlan request, BlockIds ids) {}

  private final BlockLayout cut;
  private final StoreCalls calls;
  private final boolean layerwise;
  private final boolean othersLoadToo;
  private final BitSet failedLoads;
  private final BitSet excluded = new BitSet();
  private final BitSet spoilt = new BitSet();
  private final Set<BlockIds> named = new HashSet<>();
  private final RankBlocks blocks;
  private final List<Task> tasks = new ArrayList<>();
  private final List<Save> now = new ArrayList<>();
  private final List<Save> atTheEnd = new ArrayList<>();
  private int saved;
  private long bytes;

  StepSaves(
      KvCaches caches,
      BlockLayout cut,
      boolean layerwise,
      boolean othersLoadToo,
      StoreCalls calls,
      BitSet failedLoads) {
    this.blocks = new RankBlocks(caches, cut);
    this.cut = cut;
    this.layerwise = layerwise;
    this.othersLoadToo = othersLoadToo;
    this.calls = calls;
    this.failedLoads = failedLoads;
  }

  /** Takes the saves of a step over, under the ids of a rank. */
  void begin(StepPlan plan, BlockHasher hasher, int rank) {
    now.clear();
    atTheEnd.clear();
    excluded.clear();
    saved = 0;
    bytes = 0;
    BitSet loading = new BitSet();
    if (othersLoadToo) {
      plan.requests().forEach(request -> mark(loading, request.loadBlocks()));
    }
    for (RequestPlan request : plan.requests()) {
      if (request.saveBlocks().length == 0) {
        continue;
      }
      boolean waits = !layerwise || dependsOn(loading, request);
      (waits ? atTheEnd : now).add(new Save(request, hasher.ofRank(rank, request.saveIds())));
      if (waits) {
        mark(loading, request.saveBlocks());
      }
    }
  }

  /** Whether every layer has been saved that is to be saved layer by layer. */
  boolean layersDone() {
    return now.isEmpty() || saved == cut.shardCount();
  }

  int layersSaved() {
    return saved;
  }

  /** Leaves out what was computed from blocks that others could not load. */
  void exclude(int[] of) {
    mark(excluded, of);
  }

  /**
   * Begins to save a layer that has been computed.
   *
   * @param event of the device, after the computation; 0 when the layer is in memory
   */
  void layer(int layer, long event) {
    if (now.isEmpty()) {
      return;
    }
    if (layer != saved) {
      throw new IllegalStateException(
          "layers are saved in order; next is layer " + saved + ", asked for is " + layer);
    }
    saved++;
    collect(now);
    dump(layer, event);
  }

  /**
   * Saves what was to wait for the end of the step.
   *
   * @param event of the device, after the computation of all layers; 0 when they are in memory
   */
  void rest(long event) {
    collect(atTheEnd);
    dump(RankBlocks.ALL_LAYERS, event);
    atTheEnd.clear();
  }

  /** Bytes handed to the store in this step. */
  long bytes() {
    return bytes;
  }

  /**
   * Waits until the engine may write to its memory again.
   *
   * @return the shards not saved
   */
  int settle() throws InterruptedException {
    int failed = 0;
    while (!tasks.isEmpty()) {
      failed += calls.await("dump", tasks.getLast()).failedCount();
      tasks.removeLast();
    }
    return failed;
  }

  private void dump(int layer, long event) {
    if (blocks.size() > 0) {
      Transfer all = blocks.transfer(layer).after(event).build();
      @Nullable Task task = calls.dump(all);
      if (task != null) {
        bytes += all.byteSize();
        tasks.add(task);
      }
    }
  }

  /** Collects the blocks that are right, each once though several requests may have computed it. */
  private void collect(List<Save> saves) {
    blocks.clear();
    named.clear();
    spoilt.clear();
    spoilt.or(failedLoads);
    spoilt.or(excluded);
    for (Save save : saves) {
      int[] of = save.request.saveBlocks();
      if (dependsOn(spoilt, save.request)) {
        mark(spoilt, of);
        continue;
      }
      for (int i = 0; i < of.length; i++) {
        if (named.add(save.ids.slice(i, i + 1))) {
          blocks.add(save.ids, i, of[i]);
        }
      }
    }
  }

  private static boolean dependsOn(BitSet blocks, RequestPlan request) {
    for (int i = 0; i < request.contextBlocks().length && !blocks.isEmpty(); i++) {
      if (blocks.get(request.contextBlocks()[i])) {
        return true;
      }
    }
    return false;
  }

  private static void mark(BitSet blocks, int[] of) {
    for (int block : of) {
      blocks.set(block);
    }
  }
}
