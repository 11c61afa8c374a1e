package ucm.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.bench.measure.BenchPlan;
import ucm.bench.measure.BenchReport;
import ucm.bench.measure.BenchResult;
import ucm.bench.store.StoreBench;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.DiskSpace;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.HostMemory;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.MetricsScopes;

/** {@code ucm bench store}: the speed of a pipeline beside the machine's limits. */
@Command(
    name = "store",
    description = {
      "Measures a pipeline, and beside each figure what this machine can do at the same moment.",
      "",
      "Without --config: Posix, and Cache|Posix, each with blocks of 1 MiB in one segment and of 64"
          + " segments of 32 KiB. Each round dumps fresh blocks, waits until they are flushed,"
          + " loads them from the same instance and from another one that does not know them, and"
          + " looks them up. The limits are memcpy of the same segments, and create+pwrite+close,"
          + " open+pread+close and access of files of the same size, and fio where it is installed."
          + " Files are made in new folders within those that the configuration names, and removed"
          + " at the end."
    })
final class BenchStoreCommand extends JsonCommand {

  private static final double GIB = 1L << 30;
  private static final double DEFAULT_BUFFER_GB = 0.5;
  private static final String BUFFER_KEY = "cache_buffer_capacity_gb";
  private static final long WARM_SEGMENT = 1024;
  private static final long WARM_SHARD = 4096;
  private static final int WARM_BLOCKS = 256;
  // So many blocks in all that few of 4096 folders are made later, while something is timed.
  private static final int WARM_ROUNDS = 48;
  private static final String FOLDER_PREFIX = "ucm-bench-";
  private static final List<BlockLayout> DEFAULT_LAYOUTS =
      List.of(
          BlockLayout.uniform(1 << 20, 1 << 20, 1 << 20),
          BlockLayout.uniform(32 << 10, 2 << 20, 2 << 20));

  @Mixin private PluginsOption plugins = new PluginsOption();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description =
          "measure the pipeline of this file; new folders within its storage_backends are used. Two"
              + " instances of it are open, so it takes its memory twice")
  private @Nullable Path config;

  @Option(
      names = "--dir",
      paramLabel = "DIR",
      description =
          "where to make the temporary folder, without --config or when its pipeline has no"
              + " storage_backends (default: the system's temporary folder)")
  private @Nullable Path dir;

  @Option(
      names = "--block-size",
      paramLabel = "BYTES",
      description = "measure blocks of this size instead of the two shapes")
  private @Nullable Long blockSize;

  @Option(
      names = "--shard-size",
      paramLabel = "BYTES",
      description = "size of a shard of such a block (default: the block)")
  private @Nullable Long shardSize;

  @Option(
      names = "--tensor-size",
      paramLabel = "BYTES",
      description = "size of a tensor, one segment of memory, of such a shard (default: the shard)")
  private @Nullable Long tensorSize;

  @Option(
      names = "--blocks",
      paramLabel = "N",
      description = "blocks of a round (default: ${DEFAULT-VALUE})")
  private int blocks = 64;

  @Option(
      names = "--task-blocks",
      paramLabel = "N",
      description =
          "blocks of a task; a round's tasks follow one another (default: ${DEFAULT-VALUE})")
  private int taskBlocks = 16;

  @Option(
      names = "--layerwise",
      description =
          "a task has one shard, a layer, of every block of the round, as with use_layerwise; the"
              + " plain files stay open from their first layer to their last")
  private boolean layerwise;

  @Option(
      names = "--in-flight",
      paramLabel = "N",
      description =
          "tasks under way at a time; the plain calls do as many before they wait for one another"
              + " (default: ${DEFAULT-VALUE})")
  private int inFlight = 1;

  @Option(
      names = "--lookups",
      paramLabel = "N",
      description = "ids looked up of each kind in a round (default: ${DEFAULT-VALUE})")
  private int lookups = 8192;

  @Option(
      names = "--repeat",
      paramLabel = "N",
      description = "rounds that count; fewer than 7 say little (default: ${DEFAULT-VALUE})")
  private int repeat = 7;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description =
          "rounds before them, after some of many small blocks; 0: none at all"
              + " (default: ${DEFAULT-VALUE})")
  private int warmup = 3;

  @Option(
      names = "--idle",
      paramLabel = "SECONDS",
      description =
          "after the rounds, do nothing for so long, and print what the open instances take of a"
              + " processor meanwhile (default: ${DEFAULT-VALUE}, not looked at)")
  private int idleSeconds = 0;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "threads of the machine's limits (default: the number of processors)")
  private int threads = Runtime.getRuntime().availableProcessors();

  @Option(
      names = "--buffer-gb",
      paramLabel = "GB",
      description =
          "host memory of the Cache stage of each instance (default: that of the configuration, or"
              + " 0.5)")
  private @Nullable Double bufferGb;

  @Override
  public void run() throws InterruptedException {
    requireSense();
    PrintWriter out = out();
    double loadBefore = BenchReport.loadAverage();
    List<BenchResult> results = new ArrayList<>();
    try (Cleanup cleanup = new Cleanup()) {
      StoreCatalog catalog = plugins.catalog();
      List<BlockLayout> layouts = layouts();
      List<UcmConfig> pipelines = pipelines();
      List<Path> parents = parents();
      requireSpace(parents, layouts, pipelines);
      List<Path> folders = new ArrayList<>();
      parents.forEach(parent -> folders.add(cleanup.folder(parent, FOLDER_PREFIX)));
      MetricsScopes places = metrics.open(pipelines.getFirst(), cleanup, err());
      for (int i = 0; i < pipelines.size(); i++) {
        UcmConfig pipeline = pipelines.get(i);
        String store = "store-" + i;
        List<String> stores = folders.stream().map(f -> f.resolve(store).toString()).toList();
        if (warmup > 0) {
          Path limit = folders.getFirst().resolve("limit-warm-" + i);
          warmUp(pipeline, stores, limit, catalog, cleanup);
        }
        for (BlockLayout layout : layouts) {
          Path limit = folders.getFirst().resolve("limit-" + results.size());
          BenchPlan plan = plan(pipeline, layout, stores, limit);
          String what = "bench " + (results.size() + 1) + " " + pipeline.pipeline();
          try (StoreBench bench = cleanup.add(new StoreBench(plan, catalog, places));
              Progress progress = new Progress(what, plan.rounds())) {
            results.add(bench.run(progress));
          }
        }
      }
      if (json) {
        BenchReport.printJson(out, loadBefore, results);
      } else {
        BenchReport.print(out, loadBefore, results);
      }
    }
  }

  /**
   * Moves many small blocks, so that the JVM has compiled what an engine runs all day, and the store has
   * made its folders, before large ones are timed. What that measured is dropped.
   */
  private void warmUp(
      UcmConfig pipeline, List<String> stores, Path limit, StoreCatalog catalog, Cleanup cleanup)
      throws InterruptedException {
    BenchPlan plan =
        plan(pipeline, smallLayout(), stores, limit).withRounds(WARM_BLOCKS, WARM_ROUNDS);
    try (StoreBench bench =
            cleanup.add(new StoreBench(plan, catalog, (model, worker) -> StoreMetrics.NONE));
        Progress progress = new Progress("warm-up " + pipeline.pipeline(), plan.rounds())) {
      bench.warmUp(progress);
    }
  }

  private BlockLayout smallLayout() {
    return BlockLayout.uniform(WARM_SEGMENT, WARM_SHARD, layerwise ? 4 * WARM_SHARD : WARM_SHARD);
  }

  private void requireSense() {
    UsageException.atLeast("--blocks", blocks, 1);
    UsageException.atLeast("--task-blocks", taskBlocks, 1);
    UsageException.atLeast("--in-flight", inFlight, 1);
    UsageException.atLeast("--lookups", lookups, 1);
    UsageException.atLeast("--repeat", repeat, 1);
    UsageException.atLeast("--warmup", warmup, 0);
    UsageException.atLeast("--threads", threads, 1);
    UsageException.atLeast("--idle", idleSeconds, 0);
    UsageException.when(
        blockSize == null && (shardSize != null || tensorSize != null),
        "--shard-size and --tensor-size go with --block-size");
  }

  private List<BlockLayout> layouts() {
    if (blockSize == null) {
      return DEFAULT_LAYOUTS;
    }
    long shard = shardSize == null ? blockSize : shardSize;
    long tensor = tensorSize == null ? shard : tensorSize;
    UsageException.when(blockSize > 1 << 30, "--block-size is 1 to 1073741824; found " + blockSize);
    try {
      return List.of(BlockLayout.uniform(tensor, shard, blockSize));
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }

  private List<UcmConfig> pipelines() {
    if (config == null) {
      double buffer = bufferGb == null ? DEFAULT_BUFFER_GB : bufferGb;
      return List.of(
          UcmConfig.of("Posix", Map.of()), UcmConfig.of("Cache|Posix", Map.of(BUFFER_KEY, buffer)));
    }
    UcmConfig read = UcmConfig.read(config);
    return List.of(
        bufferGb == null ? read : read.with(Map.of(BUFFER_KEY, bufferGb), "command line"));
  }

  /** The folders within which to make new ones: one for each directory of the pipeline. */
  private List<Path> parents() {
    if (config != null) {
      Optional<List<String>> configured =
          UcmConfig.read(config).storeConfig().find(CommonKeys.STORAGE_BACKENDS);
      if (configured.isPresent()) {
        return configured.get().stream().map(Path::of).toList();
      }
    }
    return List.of(dir != null ? dir : Path.of(System.getProperty("java.io.tmpdir")));
  }

  /** The folders of a pipeline's store are the same for all layouts, that of the limits is not. */
  private BenchPlan plan(UcmConfig pipeline, BlockLayout layout, List<String> stores, Path limit) {
    StoreConfig values = pipeline.storeConfig();
    Map<String, Object> engine = new LinkedHashMap<>(EngineConfig.of(layout));
    if (config == null || values.isSet(CommonKeys.STORAGE_BACKENDS)) {
      engine.put(CommonKeys.STORAGE_BACKENDS.name(), stores);
    }
    return new BenchPlan(
        pipeline.with(engine, "engine"),
        layout,
        values.get(CommonKeys.IO_DIRECT),
        limit,
        blocks,
        Math.min(taskBlocks, blocks),
        layerwise,
        inFlight,
        lookups,
        warmup,
        repeat,
        threads,
        idleSeconds);
  }

  /** Says what is lacking before anything is written. */
  private void requireSpace(
      List<Path> parents, List<BlockLayout> layouts, List<UcmConfig> pipelines) {
    // The warm-up's files, the store's and the plain ones.
    long written =
        warmup == 0
            ? 0
            : 2L * pipelines.size() * WARM_ROUNDS * fileBytes(smallLayout(), WARM_BLOCKS);
    long largest = 0;
    for (BlockLayout layout : layouts) {
      long round = fileBytes(layout, blocks);
      for (UcmConfig pipeline : pipelines) {
        boolean keepsFiles = pipeline.storeConfig().get(CommonKeys.IO_DIRECT);
        // The store's files and the plain ones of a round or all, and fio's.
        written += (2L * (keepsFiles ? warmup + repeat : 1) + 2) * round;
      }
      largest = Math.max(largest, round);
    }
    for (Path parent : parents) {
      DiskSpace.require(
          "the benchmark",
          parent,
          written,
          "name another folder with --dir or --config, or ask for less with --blocks or --repeat");
    }
    // The engine's pages, both sides of memcpy and the buffers of the plain files.
    double buffers = 2 * (bufferGb != null ? bufferGb : config == null ? DEFAULT_BUFFER_GB : 0);
    long need = 4 * largest + (long) (buffers * GIB);
    HostMemory.require("the benchmark needs", need, "--blocks or --buffer-gb");
  }

  /** Bytes that files of so many blocks take, with what a store puts beside them. */
  private static long fileBytes(BlockLayout layout, int blocks) {
    return Math.multiplyExact(blocks, layout.blockSize()) + blocks * 8192L;
  }
}
