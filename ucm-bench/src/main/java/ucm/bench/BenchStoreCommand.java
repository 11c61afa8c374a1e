package ucm.bench;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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
import ucm.bench.store.StoreBench;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.runtime.Room;
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
          + " open+pread+close and access of files of the same size, by threads that stay awake. Of"
          + " a pipeline such as Cache|Posix|Nfs also both tiers, beside a pipeline that has one of"
          + " them alone. Files are made in new folders within those that the configuration names,"
          + " and removed at the end.",
      "",
      "Before the first round, small blocks are moved for 20 seconds at most, so that Java has"
          + " compiled what is measured and folders are there; not with --warmup 0."
    })
final class BenchStoreCommand extends JsonCommand {

  private static final double DEFAULT_BUFFER_GB = 0.5;
  private static final String BUFFER_KEY = "cache_buffer_capacity_gb";
  // So many blocks in all that few of 4096 folders are made later, while something is timed.
  private static final int WARM_BLOCKS = 256;
  private static final int WARM_ROUNDS = 48;
  // A network file system makes some hundred files a second.
  private static final Duration LONGEST_WARM_UP = Duration.ofSeconds(20);
  private static final Duration NO_LIMIT = Duration.ofDays(365);
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
              + " instances of it are open, so it takes its memory twice, and with two tiers of"
              + " storage six times")
  private @Nullable Path config;

  @Option(
      names = "--dir",
      paramLabel = "DIR",
      description =
          "where to make the temporary folder, without --config or when its pipeline has no"
              + " storage_backends (default: the system's temporary folder)")
  private Path dir = Path.of(System.getProperty("java.io.tmpdir"));

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

  @Mixin private RoundOptions rounds = new RoundOptions();

  @Option(
      names = "--buffer-gb",
      paramLabel = "GB",
      description =
          "host memory of the Cache stage of each instance (default: that of the configuration, or"
              + " 0.5)")
  private @Nullable Double bufferGb;

  @Override
  public void run() throws InterruptedException {
    UsageException.atLeast("--blocks", blocks, 1);
    UsageException.atLeast("--task-blocks", taskBlocks, 1);
    UsageException.atLeast("--in-flight", inFlight, 1);
    UsageException.atLeast("--lookups", lookups, 1);
    rounds.require();
    double loadBefore = BenchReport.loadAverage();
    List<BenchReport.Result> results = new ArrayList<>();
    try (Cleanup cleanup = new Cleanup()) {
      StoreCatalog catalog = plugins.catalog();
      List<BlockLayout> layouts = layouts();
      List<UcmConfig> pipelines = pipelines();
      List<Path> parents = parents(pipelines.getFirst());
      requireRoom(parents, layouts, pipelines);
      List<Path> folders = new ArrayList<>();
      parents.forEach(parent -> folders.add(cleanup.folder(parent, "ucm-bench-")));
      MetricsScopes scopes = metrics.open(pipelines.getFirst(), cleanup, err());
      for (int i = 0; i < pipelines.size(); i++) {
        String store = "store-" + i;
        // Those of an upper tier are new ones as well; the others are named in each plan.
        UcmConfig pipeline =
            pipelines
                .get(i)
                .withDirectories(
                    directory -> cleanup.folder(Path.of(directory), "ucm-bench-").toString(),
                    "bench store");
        List<String> stores = folders.stream().map(f -> f.resolve(store).toString()).toList();
        if (rounds.warmup > 0) {
          Path limit = folders.getFirst().resolve("limit-warm-" + i);
          // So that the JVM has compiled what an engine runs all day, and the store has its
          // folders.
          BenchPlan small =
              plan(pipeline, small(), stores, limit, WARM_BLOCKS, WARM_BLOCKS, WARM_ROUNDS, 0);
          BenchReport.Result _ =
              measure("warm-up", small, catalog, (_, _) -> StoreMetrics.NONE, LONGEST_WARM_UP);
        }
        for (BlockLayout layout : layouts) {
          Path limit = folders.getFirst().resolve("limit-" + results.size());
          BenchPlan plan =
              plan(pipeline, layout, stores, limit, blocks, lookups, rounds.warmup, rounds.repeat);
          String what = "bench " + (results.size() + 1);
          results.add(measure(what, plan, catalog, scopes, NO_LIMIT));
        }
      }
      print(
          () -> BenchReport.data(loadBefore, results),
          () -> BenchReport.print(out(), loadBefore, results));
    }
  }

  private static BenchReport.Result measure(
      String what, BenchPlan plan, StoreCatalog catalog, MetricsScopes scopes, Duration most)
      throws InterruptedException {
    try (Cleanup cleanup = new Cleanup();
        Progress progress = new Progress(what + " " + plan.config().pipeline(), plan.rounds())) {
      return new StoreBench(plan, catalog, scopes).run(cleanup, progress, most);
    }
  }

  private BlockLayout small() {
    return BlockLayout.uniform(1024, 4096, layerwise ? 16_384 : 4096);
  }

  private List<BlockLayout> layouts() {
    UsageException.when(
        blockSize == null && (shardSize != null || tensorSize != null),
        "--shard-size and --tensor-size go with --block-size");
    if (blockSize == null) {
      return DEFAULT_LAYOUTS;
    }
    long block = blockSize;
    long shard = shardSize == null ? block : shardSize;
    long tensor = tensorSize == null ? shard : tensorSize;
    UsageException.when(block > 1 << 30, "--block-size is 1 to 1073741824; found " + block);
    return List.of(UsageException.accepted(() -> BlockLayout.uniform(tensor, shard, block)));
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
  private List<Path> parents(UcmConfig pipeline) {
    return pipeline
        .storeConfig()
        .find(CommonKeys.STORAGE_BACKENDS)
        .map(directories -> directories.stream().map(Path::of).toList())
        .orElse(List.of(dir));
  }

  /** The folders of a pipeline's store are the same for all layouts, that of the limits is not. */
  private BenchPlan plan(
      UcmConfig pipeline,
      BlockLayout layout,
      List<String> stores,
      Path limit,
      int roundBlocks,
      int asked,
      int warmup,
      int repeat) {
    StoreConfig values = pipeline.storeConfig();
    Map<String, Object> engine = EngineConfig.of(layout);
    if (config == null || values.isSet(CommonKeys.STORAGE_BACKENDS)) {
      engine.put(CommonKeys.STORAGE_BACKENDS.name(), stores);
    }
    return new BenchPlan(
        pipeline.with(engine, "engine"),
        layout,
        values.get(CommonKeys.IO_DIRECT),
        limit,
        roundBlocks,
        Math.min(taskBlocks, roundBlocks),
        layerwise,
        inFlight,
        asked,
        warmup,
        repeat,
        rounds.threads);
  }

  /** Says what is lacking before anything is written. */
  private void requireRoom(
      List<Path> parents, List<BlockLayout> layouts, List<UcmConfig> pipelines) {
    // The warm-up's files, the store's and the plain ones.
    long warm = 2L * pipelines.size() * WARM_ROUNDS * fileBytes(small(), WARM_BLOCKS);
    long written = rounds.warmup == 0 ? 0 : warm;
    long largest = 0;
    for (BlockLayout layout : layouts) {
      long round = fileBytes(layout, blocks);
      for (UcmConfig pipeline : pipelines) {
        boolean keepsFiles = pipeline.storeConfig().get(CommonKeys.IO_DIRECT);
        // The store's files and the plain ones of a round or all, and the room for these.
        written += (2L * (keepsFiles ? rounds.warmup + rounds.repeat : 1) + 1) * round;
      }
      largest = Math.max(largest, round);
    }
    for (Path parent : parents) {
      Room.onDisk(
          "the benchmark",
          parent,
          written,
          "name another folder with --dir or --config, or ask for less with --blocks or --repeat");
    }
    // Those of two tiers are measured by themselves, too.
    int instances = pipelines.getFirst().directories().size() > 1 ? 6 : 2;
    // The engine's pages, and both sides of memcpy.
    double buffers =
        instances * (bufferGb != null ? bufferGb : config == null ? DEFAULT_BUFFER_GB : 0);
    long need = 3 * largest + (long) (buffers * Figures.GIB);
    Room.inMemory("the benchmark needs", need, "--blocks or --buffer-gb");
  }

  /** Bytes that files of so many blocks take, with what a store puts beside them. */
  private static long fileBytes(BlockLayout layout, int blocks) {
    return Math.multiplyExact(blocks, layout.blockSize()) + blocks * 8192L;
  }
}
