package ucm.pipeline.connector;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.ModelFingerprint;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.statistics.ConnectorFaults;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.connector.statistics.WorkerMetrics;
import ucm.pipeline.hash.BlockHasher;

/**
 * What both sides of an engine are made from: its configuration, the stores that are there, and the
 * engine itself. Immutable.
 *
 * <pre>{@code
 * ConnectorSetup setup = ConnectorSetup.of(UcmConfig.read(file), StoreCatalog.find(), spec);
 * try (WorkerConnector worker = setup.worker(0, 0, caches);
 *     SchedulerConnector scheduler = setup.scheduler()) { ... }
 * }</pre>
 *
 * <p>Data-parallel instances on one node have a setup each, with different names in their {@link
 * EngineSpec}: pipelines, shared memory and trace files are named after them.
 */
public final class ConnectorSetup {

  /** The scheduler side among the workers that metrics name. */
  static final String SCHEDULER = "scheduler";

  private static final Logger LOG = LoggerFactory.getLogger(ConnectorSetup.class);
  private static final MetricsScopes NOWHERE = (model, worker) -> StoreMetrics.NONE;
  private static final String ENGINE = "engine";
  private static final String CACHE_STAGE = "Cache";
  private static final ConfigKey<Boolean> SHARE_BUFFER =
      ConfigKey.flag("share_buffer_enable").defaultTo(false);
  // A task that its store has given up ends a little after its deadline.
  private static final Duration GRACE = Duration.ofSeconds(10);

  private final UcmConfig config;
  private final StoreCatalog catalog;
  private final EngineSpec spec;
  private final ConnectorSettings settings;
  private final BlockHasher hasher;
  private final MetricsScopes metrics;
  private final TraceOptions traces;
  private final Generations generations;
  // Guarded by this: the one that was read; null before.
  private @Nullable String generation;
  // Of pipelines opened here, for schedulers that share them.
  private final Map<Store, StageLookups> stageLookups =
      Collections.synchronizedMap(new WeakHashMap<>());

  private ConnectorSetup(
      UcmConfig config,
      StoreCatalog catalog,
      EngineSpec spec,
      BlockHasher hasher,
      MetricsScopes metrics,
      TraceOptions traces,
      Generations generations) {
    this.config = config;
    this.catalog = catalog;
    this.spec = spec;
    this.settings = config.settings();
    this.hasher = hasher;
    this.metrics = metrics;
    this.traces = traces;
    this.generations = generations;
  }

  /**
   * A setup that counts nothing, and writes traces (if they are switched on) where the environment
   * says. Opens nothing.
   *
   * @throws ucm.pipeline.config.ConfigException when a value of the configuration's top level is bad, or
   *     there is no block hasher of the name it asks for
   * @throws StoreException when the engine and the configuration do not fit
   */
  public static ConnectorSetup of(UcmConfig config, StoreCatalog catalog, EngineSpec spec) {
    ConnectorSettings settings = config.settings();
    ModelFingerprint wanted = settings.modelFingerprint();
    ModelFingerprint inForce = spec.identity().inForce(wanted);
    if (inForce != wanted) {
      LOG.info(
          "model_fingerprint is {}, and the engine does not say what is in {}: its blocks are named"
              + " by {}",
          wanted.word(),
          spec.model(),
          inForce.word());
    }
    BlockHasher hasher =
        config.blockHashing(catalog).hasher(modelName(settings, spec), spec.tpSize(), spec.dtype());
    return new ConnectorSetup(
        config,
        catalog,
        spec,
        hasher,
        NOWHERE,
        TraceOptions.of(System.getenv()),
        new Generations());
  }

  private static String modelName(ConnectorSettings settings, EngineSpec spec) {
    return spec.identity().modelName(spec.model(), settings.modelFingerprint());
  }

  /** This setup, counting elsewhere; the stages of its pipelines count there too. */
  public ConnectorSetup withMetrics(StoreMetrics scope) {
    return withMetricsScopes((model, worker) -> scope);
  }

  /**
   * This setup, with a scope to count for the scheduler side and for each rank; the stages of its
   * pipelines count where their owner does. {@code metrics_config_path} says what a registry of {@code
   * ucm.metrics} shows of it.
   */
  public ConnectorSetup withMetricsScopes(MetricsScopes places) {
    return new ConnectorSetup(config, catalog, spec, hasher, places, traces, generations);
  }

  /**
   * This setup, with blocks named by a hasher of the program instead of the configured one: for who
   * knows the names of blocks and not their tokens, as from a trace.
   */
  public ConnectorSetup withBlockHasher(BlockHasher own) {
    return new ConnectorSetup(config, catalog, spec, own, metrics, traces, generations);
  }

  /** This setup, with traces written elsewhere. */
  public ConnectorSetup withTraces(TraceOptions traces) {
    return new ConnectorSetup(config, catalog, spec, hasher, metrics, traces, generations);
  }

  /**
   * This setup, with generations that other setups know as well: for who opens engines of one model over
   * one store that is in memory.
   */
  public ConnectorSetup withGenerations(Generations shared) {
    return new ConnectorSetup(config, catalog, spec, hasher, metrics, traces, shared);
  }

  /**
   * Opens the scheduler side with a pipeline of its own, which looks up and moves no data ({@code
   * device_id: -1}); in lite mode, with a {@code Fake} one, whatever is configured.
   *
   * @throws ucm.pipeline.config.ConfigException when the configuration has an error
   * @throws StoreException when a stage cannot be opened
   */
  public SchedulerConnector scheduler() {
    UcmConfig complete =
        settings.useLite() ? liteConfig(LiteCache.LAYOUT) : configOf(-1, spec.kv());
    StageLookups lookups = lookups(SCHEDULER, complete);
    Store store = Pipeline.open(complete, catalog, stage -> lookups);
    return scheduler(store, store, lookups);
  }

  /**
   * Makes the scheduler side of an engine whose only worker is in the same process: it asks the
   * worker's pipeline, and so also finds what is in its memory and not in the storage yet.
   *
   * @param shared an open pipeline, which the caller closes later; in lite mode one of {@link
   *     #openPipeline}
   * @throws StoreException in lite mode, for a pipeline that keeps bytes
   */
  public SchedulerConnector scheduler(Store shared) {
    if (settings.useLite() && shared.keepsBytes()) {
      throw new StoreException(
          "use_lite counts blocks that have no bytes, and "
              + shared
              + " keeps bytes: open the pipeline with openPipeline()");
    }
    StageLookups none = new StageLookups(StoreMetrics.NONE, List.of());
    return scheduler(shared, null, stageLookups.getOrDefault(shared, none));
  }

  private SchedulerConnector scheduler(Store store, @Nullable Store owned, StageLookups lookups) {
    if (settings.metricsConfigPath().isPresent() && metrics.equals(NOWHERE)) {
      LOG.warn(
          "metrics_config_path is set, and the engine has no metrics: it must hand a registry to"
              + " withMetricsScopes()");
    }
    return new SchedulerConnector(this, store, owned, lookups);
  }

  private StageLookups lookups(String worker, UcmConfig complete) {
    return new StageLookups(metrics(worker), stages(complete));
  }

  /**
   * Opens the worker side of a rank, with a pipeline of its own.
   *
   * @param rank tensor-parallel rank, 0 to {@code tpSize} (exclusive)
   * @param deviceId ordinal of its device on this node; any from 0 on when the KV cache is in host
   *     memory
   * @param caches its KV cache
   * @throws ucm.pipeline.config.ConfigException when the configuration has an error
   * @throws StoreException when a stage cannot be opened, or the KV cache is not as the {@link
   *     EngineSpec} says
   */
  public WorkerConnector worker(int rank, int deviceId, KvCaches caches) {
    check(rank, caches);
    if (settings.useLite()) {
      return worker(rank, caches, null, null);
    }
    StoreMetrics scope = metrics(String.valueOf(rank));
    Store store = Pipeline.open(configOf(deviceId, spec.kv()), catalog, stage -> scope);
    return worker(rank, caches, store, store);
  }

  /**
   * Makes the worker side of a rank over a pipeline that is open.
   *
   * @param shared from {@link #openPipeline}, or any store of the {@link KvLayout#blockLayout};
   *     closed by the caller, after this
   */
  public WorkerConnector worker(int rank, KvCaches caches, Store shared) {
    check(rank, caches);
    return worker(rank, caches, shared, null);
  }

  private WorkerConnector worker(
      int rank, KvCaches caches, @Nullable Store store, @Nullable Store owned) {
    return new WorkerConnector(this, rank, caches, calls(rank, store), owned);
  }

  /**
   * Loads and dumps of whole blocks for a rank, for who moves them elsewhere than to a KV cache.
   *
   * @param store an open pipeline, closed by the caller; null in lite mode, which moves nothing
   */
  public StoreCalls calls(int rank, @Nullable Store store) {
    ConnectorFaults faults =
        new ConnectorFaults(
            "rank " + rank + " of " + spec.instance(), metrics(String.valueOf(rank)));
    Duration patience = Duration.ofMillis(config.storeConfig().get(CommonKeys.TIMEOUT_MS));
    return new StoreCalls(store, patience.plus(GRACE), faults);
  }

  /** What a rank counts of its steps. */
  public WorkerMetrics workerMetrics(int rank) {
    return new WorkerMetrics(metrics(String.valueOf(rank)), spec);
  }

  private void check(int rank, KvCaches caches) {
    if (rank < 0 || rank >= spec.ranks()) {
      throw new StoreException(
          "the engine has ranks 0 to " + (spec.ranks() - 1) + "; found rank " + rank);
    }
    if (settings.useLayerwise() && !settings.useLite() && !spec.kv().isUniform()) {
      throw new StoreException(
          ("use_layerwise is true, and the layers of %s differ: %s; layer by layer,"
                  + " all must have the same tensors: set use_layerwise to false")
              .formatted(spec.model(), spec.kv()));
    }
    if (!caches.layout().equals(spec.kv())) {
      throw new StoreException(
          ("the KV cache of rank %s is not what the engine said it has: %s was said,"
                  + " registered is %s")
              .formatted(rank, spec.kv(), caches.layout()));
    }
  }

  /**
   * Opens the pipeline of a worker, for those who share it; in lite mode a {@code Fake} one, whatever
   * is configured, so that an engine need not know the mode.
   *
   * @param deviceId as for {@link #worker(int, int, KvCaches)}
   * @return an open pipeline, which the caller closes
   */
  public Pipeline openPipeline(int deviceId) {
    UcmConfig complete = settings.useLite() ? liteConfig(spec.kv()) : configOf(deviceId, spec.kv());
    StageLookups lookups = lookups(deviceId < 0 ? SCHEDULER : String.valueOf(deviceId), complete);
    Pipeline pipeline = Pipeline.open(complete, catalog, stage -> lookups);
    stageLookups.put(pipeline, lookups);
    return pipeline;
  }

  /**
   * Has an open pipeline of {@link #openPipeline} take the live values of another configuration.
   *
   * @return what could not be taken, and why
   */
  public List<ConfigProblem> reload(Pipeline open, UcmConfig changed) {
    StoreConfig values = changed.with(keys(0, spec.kv()), ENGINE).storeConfig();
    open.reload(values);
    return values.problems().stream().filter(ConfigProblem::isError).toList();
  }

  /** The configuration with what the engine knows, for the pipeline of a device, or -1. */
  UcmConfig configOf(int deviceId, KvLayout layout) {
    Map<String, Object> keys = keys(deviceId, layout);
    // The ranks load the same blocks: one buffer has them once. A scheduler has no buffer.
    if (spec.mla()
        && deviceId >= 0
        && stages(config).contains(CACHE_STAGE)
        && !config.storeConfig().isSet(SHARE_BUFFER)) {
      keys.put(SHARE_BUFFER.name(), true);
    }
    return config.with(keys, ENGINE);
  }

  private static List<String> stages(UcmConfig of) {
    try {
      return of.pipeline().stages();
    } catch (StoreException e) {
      // It is refused, with all that is wrong with it, when it is opened.
      return List.of();
    }
  }

  /** A configured {@code Fake} keeps its settings. */
  private UcmConfig liteConfig(KvLayout layout) {
    Map<String, Object> keys = keys(0, layout);
    PipelineSpec opened = config.openedPipeline();
    return stages(config).equals(opened.stages())
        ? config.with(keys, ENGINE)
        : UcmConfig.of(opened.toString(), keys);
  }

  private Map<String, Object> keys(int deviceId, KvLayout layout) {
    Map<String, Object> keys = CommonKeys.values(layout.blockLayout());
    keys.put(CommonKeys.UNIQUE_ID.name(), spec.instance());
    keys.put(CommonKeys.DEVICE_ID.name(), (long) deviceId);
    // With MLA the ranks hold the same blocks, and may share them.
    keys.put(CommonKeys.LOCAL_RANK_SIZE.name(), spec.mla() ? (long) spec.tpSize() : 1L);
    return keys;
  }

  /** What tells the blocks of the model from others, as far as every block of it has it in its name. */
  public String modelName() {
    return modelName(settings, spec);
  }

  /**
   * The generation of blocks with which the engine of this setup starts; empty as long as no engine of the
   * model has disowned any. Read once.
   *
   * @throws StoreException when it cannot be read
   */
  public synchronized String generation() {
    String known = generation;
    if (known == null) {
      known = generations.current(directories(), modelName());
      generation = known;
    }
    return known;
  }

  /**
   * Has engines of the model that start from now on find nothing that was stored before; for an engine
   * that names blocks by itself. Others use {@link SchedulerConnector#reset}.
   *
   * @throws StoreException when it cannot be written anywhere
   */
  public synchronized void disown() {
    generation = null;
    generations.advance(directories(), modelName());
  }

  private List<Path> directories() {
    return config.directories().values().stream()
        .flatMap(List::stream)
        .distinct()
        .map(Path::of)
        .toList();
  }

  EngineSpec spec() {
    return spec;
  }

  TraceOptions traces() {
    return traces;
  }

  public ConnectorSettings settings() {
    return settings;
  }

  public BlockHasher hasher() {
    return hasher;
  }

  /** Where a rank, or {@link #SCHEDULER}, counts. */
  StoreMetrics metrics(String worker) {
    return metrics.scope(spec.model(), worker);
  }
}
