package ucm.bench.measure;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import ucm.api.BlockLayout;
import ucm.pipeline.config.UcmConfig;

/**
 * What one benchmark of a pipeline is to do.
 *
 * @param config the pipeline, with the layout of its blocks
 * @param layout that layout
 * @param direct whether the pipeline's files pass by the page cache
 * @param folder an empty folder for the files of the machine's limits, on the volume of the pipeline
 * @param blocks how many blocks are dumped and loaded in a round
 * @param taskBlocks how many of them in one task
 * @param layerwise whether a task has one shard of all blocks instead, and the tasks follow the shards
 * @param inFlight how many tasks are under way at a time
 * @param lookups how many ids are looked up, of each kind, in a round
 * @param warmup rounds that do not count
 * @param repeat rounds that count
 * @param threads of the machine's limits
 * @param idleSeconds how long to look at instances that have nothing to do
 */
public record BenchPlan(
    UcmConfig config,
    BlockLayout layout,
    boolean direct,
    Path folder,
    int blocks,
    int taskBlocks,
    boolean layerwise,
    int inFlight,
    int lookups,
    int warmup,
    int repeat,
    int threads,
    int idleSeconds) {

  public int rounds() {
    return warmup + repeat;
  }

  /** The same with other rounds, in which as many ids are looked up as there are blocks. */
  public BenchPlan withRounds(int blocks, int repeat) {
    return new BenchPlan(
        config,
        layout,
        direct,
        folder,
        blocks,
        Math.min(taskBlocks, blocks),
        layerwise,
        inFlight,
        blocks,
        0,
        repeat,
        threads,
        0);
  }

  /** What the tasks of a round move, in their order. */
  public List<BenchStep> steps() {
    List<BenchStep> steps = new ArrayList<>();
    if (layerwise) {
      for (int shard = 0; shard < layout.shardCount(); shard++) {
        long size = layout.shardSize();
        steps.add(new BenchStep(0, blocks, shard, shard * size, size));
      }
      return steps;
    }
    for (int from = 0; from < blocks; from += taskBlocks) {
      int to = Math.min(blocks, from + taskBlocks);
      steps.add(new BenchStep(from, to, BenchStep.ALL_SHARDS, 0, layout.blockSize()));
    }
    return steps;
  }

  /** Bytes of all blocks of a round. */
  public long roundBytes() {
    return blocks * layout.blockSize();
  }
}
