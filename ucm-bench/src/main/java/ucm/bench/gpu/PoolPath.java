package ucm.bench.gpu;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.bench.measure.BenchIds;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.runtime.EngineConfig;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/** The pool of a Cache store: down is a load of the blocks of the last dump, up a dump of new ones. */
final class PoolPath implements GpuPath {

  private static final Duration PATIENCE = Duration.ofMinutes(2);

  private final GpuMemory memory;
  private final Pipeline cache;
  private final BenchIds ids = new BenchIds(System.nanoTime());
  private final List<Task> begun = new ArrayList<>();
  private BlockIds dumped;

  PoolPath(GpuMemory memory, StoreCatalog catalog, int deviceId, int streams) {
    this.memory = memory;
    GpuShape shape = memory.shape;
    dumped = ids.next(memory.shards);
    // Room for three rounds, so that dumps evict, never wait, and what is loaded meanwhile stays.
    double capacity =
        3.0 * memory.shards * Math.ceilDiv(shape.shardBytes(), 4096) * 4096 / Figures.GIB;
    Fields values =
        new Fields()
            .with("cache_buffer_capacity_gb", capacity)
            .with("cache_device", "cuda")
            .with("cache_stream_number", (long) streams)
            .with("device_id", (long) deviceId);
    cache =
        Pipeline.open(
            UcmConfig.of("Cache", Map.of())
                .with(EngineConfig.of(shape.layout()), "engine")
                .with(values, "benchmark"),
            catalog);
  }

  @Override
  public String name() {
    return "pool";
  }

  @Override
  public void begin(Direction direction) {
    if (direction != Direction.UP) {
      begun.add(cache.load(transfer(dumped, memory.target)));
    }
    if (direction != Direction.DOWN) {
      dumped = ids.next(memory.shards);
      begun.add(cache.dump(transfer(dumped, memory.source)));
    }
  }

  private Transfer transfer(BlockIds blocks, MemoryRegion region) {
    GpuShape shape = memory.shape;
    Transfer.Builder builder = Transfer.scattered(shape.layout());
    for (int shard = 0; shard < blocks.size(); shard++) {
      builder.shard(blocks, shard, 0);
      for (int segment = 0; segment < shape.segments(); segment++) {
        builder.piece(region, ((long) shard * shape.segments() + segment) * shape.stride());
      }
    }
    return builder.build();
  }

  @Override
  public void await() throws InterruptedException {
    for (Task task : begun) {
      task.await(PATIENCE).requireOk();
    }
    begun.clear();
  }

  /** What was dumped is compared by a load of it. */
  @Override
  public void verify(Direction direction) throws InterruptedException {
    if (direction != Direction.UP) {
      memory.verifyTarget(name());
    }
    if (direction != Direction.DOWN) {
      begin(Direction.DOWN);
      await();
      memory.verifyTarget(name());
    }
  }

  @Override
  public void close() {
    cache.close();
  }
}
