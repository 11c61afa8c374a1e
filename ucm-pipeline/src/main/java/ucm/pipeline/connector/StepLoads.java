package ucm.pipeline.connector;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.pipeline.connector.engine.FailedLoads;
import ucm.pipeline.connector.engine.KvCaches;

/**
 * The loads of one step: all blocks at once, or layer by layer, one layer ahead of the one that the
 * engine waits for. Used by one thread.
 */
final class StepLoads {

  private final BlockLayout cut;
  private final StoreCalls calls;

  private final FailedLoads failed;
  private final boolean layerwise;
  private final int layers;
  private final RankBlocks blocks;
  private final @Nullable Task[] tasks;
  private int started;
  private int awaited;

  StepLoads(
      KvCaches caches, BlockLayout cut, boolean layerwise, StoreCalls calls, FailedLoads failed) {
    this.blocks = new RankBlocks(caches, cut);
    this.cut = cut;
    this.layerwise = layerwise;
    this.calls = calls;
    this.failed = failed;
    this.layers = layerwise ? cut.shardCount() : 1;
    this.tasks = new @Nullable Task[layers];
  }

  /** The blocks of the step; empty before it is filled. */
  RankBlocks blocks() {
    return blocks;
  }

  /** Begins: everything, or the first layer. */
  void start() {
    Arrays.fill(tasks, null);
    started = 0;
    awaited = 0;
    startUntil(1);
  }

  /** Waits until a layer is there, and those before it; begins the one after it. */
  void await(int layer) throws InterruptedException {
    int last = layerwise ? layer : 0;
    // The next layer first: while the engine waits for this one and computes it, that one moves.
    startUntil(Math.min(layers, last + 2));
    while (awaited <= last) {
      awaitNext();
    }
  }

  /** Whether a layer has been waited for. */
  boolean isThere(int layer) {
    return blocks.size() == 0 || awaited > (layerwise ? layer : 0);
  }

  /** Whether every layer has been waited for, so that no memory is in use. */
  boolean done() {
    return blocks.size() == 0 || awaited == layers;
  }

  /** Waits for what was begun and begins nothing more; blocks that lack a layer have failed. */
  void settle() throws InterruptedException {
    while (awaited < started) {
      awaitNext();
    }
    if (!done()) {
      failAll();
    }
  }

  private void failAll() {
    for (int i = 0; i < blocks.size(); i++) {
      failed.blocks().set(blocks.block(i));
    }
  }

  private void awaitNext() throws InterruptedException {
    Task task = tasks[awaited];
    if (task != null) {
      TransferResult result = calls.await("load", task);
      int perBlock = layerwise ? 1 : cut.shardCount();
      failed.add(result, shard -> blocks.block(shard / perBlock));
    }
    tasks[awaited++] = null;
  }

  private void startUntil(int end) {
    if (blocks.size() == 0) {
      started = end;
      return;
    }
    for (; started < end; started++) {
      int layer = layerwise ? started : RankBlocks.ALL_LAYERS;
      tasks[started] = calls.load(blocks.transfer(layer).build());
      if (tasks[started] == null) {
        failAll();
      }
    }
  }
}
