package ucm.bench.measure;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
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
    int threads) {

  /** What one task moves: some shards of each of some blocks; ends are exclusive. */
  public record Step(int from, int to, int firstShard, int endShard) {}

  public int rounds() {
    return warmup + repeat;
  }

  public List<Step> steps() {
    int shards = layout.shardCount();
    return layerwise
        ? IntStream.range(0, shards).mapToObj(i -> new Step(0, blocks, i, i + 1)).toList()
        : IntStream.iterate(0, from -> from < blocks, from -> from + taskBlocks)
            .mapToObj(from -> new Step(from, Math.min(blocks, from + taskBlocks), 0, shards))
            .toList();
  }

  public long roundBytes() {
    return blocks * layout.blockSize();
  }
}
