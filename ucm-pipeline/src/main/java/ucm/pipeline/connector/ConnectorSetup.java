package ucm.pipeline.connector;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.ConfigKey;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.pipeline.BlockHasher;
import ucm.pipeline.ConnectorSettings;
import ucm.pipeline.Pipeline;
import ucm.pipeline.StoreCatalog;
import ucm.pipeline.UcmConfig;

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

  private static final String ENGINE = "engine";
  private static final String LITE_PIPELINE = "Fake";
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
  private final StoreMetrics metrics;
  private final TraceOptions traces;

  private ConnectorSetup(
      UcmConfig config,
      StoreCatalog catalog,
      EngineSpec spec,
      ConnectorSettings settings,
      BlockHasher hasher,
      StoreMetrics metrics,
      TraceOptions traces) {
    this.config = config;
    this.catalog = catalog;
    this.spec = spec;
    this.settings = settings;
    this.hasher = hasher;
    this.metrics = metrics;
    this.traces = traces;
  }

  /**
   * A setup that counts nothing, and writes traces (if they are switched on) where the environment
   * says. Opens nothing.
   *
   * @throws ucm.pipeline.ConfigException when a value of the configuration's top level is bad, or
   *     there is no block hasher of the name it asks for
   * @throws StoreException when the engine and the configuration do not fit
   */
  public static ConnectorSetup of(UcmConfig config, StoreCatalog catalog, EngineSpec spec) {
    ConnectorSettings settings = config.settings();
    if (settings.useLayerwise() && !settings.useLite() && !spec.kv().isUniform()) {
      throw new StoreException(
          "use_layerwise is true, and the layers of "
              + spec.model()
              + " differ: "
              + spec.kv()
              + "; layer by layer, all must have the same tensors: set use_layerwise to false");
    }
    BlockHasher hasher =
        config.blockHashing(catalog).hasher(spec.model(), spec.tpSize(), spec.dtype());
    return new ConnectorSetup(
        config,
        catalog,
        spec,
        settings,
        hasher,
        StoreMetrics.NONE,
        TraceOptions.of(System.getenv()));
  }

  /** This setup, counting elsewhere; the stages of its pipelines count there too. */
  public ConnectorSetup withMetrics(StoreMetrics place) {
    return new ConnectorSetup(config, catalog, spec, settings, hasher, place, traces);
  }

  /** This setup, with traces written elsewhere. */
  public ConnectorSetup withTraces(TraceOptions place) {
    return new ConnectorSetup(config, catalog, spec, settings, hasher, metrics, place);
  }

  /**
   * Opens the scheduler side with a pipeline of its own, which looks up and moves no data ({@code
   * device_id: -1}); in lite mode, with a {@code Fake} one, whatever is configured.
   *
   * @throws ucm.pipeline.ConfigException when the configuration has an error
   * @throws StoreException when a stage cannot be opened
   */
  public SchedulerConnector scheduler() {
    Store store = settings.useLite() ? open(liteConfig()) : open(-1, spec.kv());
    return scheduler(store, store);
  }

  /**
   * Makes the scheduler side of an engine whose only worker is in the same process: it asks the
   * worker's pipeline, and so also finds what is in its memory and not in the storage yet.
   *
   * @param shared an open pipeline, which the caller closes later; not for lite mode
   */
  public SchedulerConnector scheduler(Store shared) {
    if (settings.useLite()) {
      throw new StoreException("use_lite needs a pipeline of its own: open one with scheduler()");
    }
    return scheduler(shared, null);
  }

  private SchedulerConnector scheduler(Store store, @Nullable Store owned) {
    return new SchedulerConnector(
        this,
        store,
        owned,
        settings.enableRecordTraces() ? recorder() : null,
        settings.useLite() ? monitor() : null);
  }

  private LiteMonitor monitor() {
    ConnectorFaults faults = new ConnectorFaults("lite mode of " + spec.instance(), metrics);
    return new LiteMonitor(spec, traces.folder(), LiteMonitor.INTERVAL, metrics, faults);
  }

  private TraceRecorder recorder() {
    ConnectorFaults faults = new ConnectorFaults("traces of " + spec.instance(), metrics);
    return new TraceRecorder(
        spec,
        traces,
        metrics,
        faults,
        () -> ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
  }

  /**
   * Opens the worker side of a rank, with a pipeline of its own.
   *
   * @param rank tensor-parallel rank, 0 to {@code tpSize} (exclusive)
   * @param deviceId ordinal of its device on this node; any from 0 on when the KV cache is in host
   *     memory
   * @param caches its KV cache
   * @throws ucm.pipeline.ConfigException when the configuration has an error
   * @throws StoreException when a stage cannot be opened, or the KV cache is not as the {@link
   *     EngineSpec} says
   */
  public WorkerConnector worker(int rank, int deviceId, KvCaches caches) {
    if (settings.useLite()) {
      check(rank, caches);
      return new WorkerConnector(
          this, rank, caches, StoreCalls.refused("lite mode moves nothing", faultsOf(rank)), null);
    }
    check(rank, caches);
    Store store = openPipeline(deviceId);
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

  private WorkerConnector worker(int rank, KvCaches caches, Store store, @Nullable Store owned) {
    StoreCalls calls = new StoreCalls(store, patience(), faultsOf(rank));
    return new WorkerConnector(this, rank, caches, calls, owned);
  }

  private ConnectorFaults faultsOf(int rank) {
    return new ConnectorFaults("rank " + rank + " of " + spec.instance(), metrics);
  }

  private void check(int rank, KvCaches caches) {
    if (rank < 0 || rank >= spec.tpSize()) {
      throw new StoreException(
          "the engine has ranks 0 to " + (spec.tpSize() - 1) + "; found rank " + rank);
    }
    if (!caches.layout().equals(spec.kv())) {
      throw new StoreException(
          "the KV cache of rank "
              + rank
              + " is not what the engine said it has: "
              + spec.kv()
              + " was said, registered is "
              + caches.layout());
    }
  }

  /**
   * Opens the pipeline of a worker, for those who share it.
   *
   * @param deviceId as for {@link #worker(int, int, KvCaches)}
   * @return an open pipeline, which the caller closes
   */
  public Pipeline openPipeline(int deviceId) {
    return open(deviceId, spec.kv());
  }

  private Pipeline open(int deviceId, KvLayout layout) {
    return open(configOf(deviceId, layout));
  }

  /** The configuration with what the engine knows, for the pipeline of a device, or -1. */
  UcmConfig configOf(int deviceId, KvLayout layout) {
    Map<String, Object> keys = keys(deviceId, layout);
    // The ranks load the same blocks: one buffer has them once. A scheduler has no buffer.
    if (spec.mla() && deviceId >= 0 && hasCache() && !config.storeConfig().isSet(SHARE_BUFFER)) {
      keys.put(SHARE_BUFFER.name(), true);
    }
    return config.with(keys, ENGINE);
  }

  private boolean hasCache() {
    try {
      return config.pipeline().stages().contains(CACHE_STAGE);
    } catch (StoreException e) {
      // It is refused, with all that is wrong with it, when it is opened.
      return false;
    }
  }

  private Pipeline open(UcmConfig complete) {
    return Pipeline.open(complete, catalog, stage -> metrics);
  }

  /** A configured {@code Fake} keeps its settings. */
  private UcmConfig liteConfig() {
    Map<String, Object> keys = keys(0, LiteCache.LAYOUT);
    return isLitePipeline() ? config.with(keys, ENGINE) : UcmConfig.of(LITE_PIPELINE, keys);
  }

  private boolean isLitePipeline() {
    try {
      return config.pipeline().toString().equals(LITE_PIPELINE);
    } catch (StoreException e) {
      return false;
    }
  }

  private Map<String, Object> keys(int deviceId, KvLayout layout) {
    Map<String, Object> keys = new LinkedHashMap<>(layout.keys());
    keys.put(CommonKeys.UNIQUE_ID.name(), spec.instance());
    keys.put(CommonKeys.DEVICE_ID.name(), (long) deviceId);
    // With MLA the ranks hold the same blocks, and may share them.
    keys.put(CommonKeys.LOCAL_RANK_SIZE.name(), spec.mla() ? (long) spec.tpSize() : 1L);
    return keys;
  }

  EngineSpec spec() {
    return spec;
  }

  ConnectorSettings settings() {
    return settings;
  }

  BlockHasher hasher() {
    return hasher;
  }

  StoreMetrics metrics() {
    return metrics;
  }

  private Duration patience() {
    return Duration.ofMillis(config.storeConfig().get(CommonKeys.TIMEOUT_MS)).plus(GRACE);
  }
}
