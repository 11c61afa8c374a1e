package ucm.server.session;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockLender.Lending;
import ucm.api.StoreException;
import ucm.api.config.ConfigKey;
import ucm.device.DeviceException;
import ucm.pipeline.catalog.UnknownStageException;
import ucm.pipeline.config.ConfigChange;
import ucm.pipeline.config.ConfigChange.Values;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.KvIdentity;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.server.device.WorkerCopies;
import ucm.server.protocol.DeviceFields;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.NamedFields;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.StageMessage;
import ucm.server.protocol.WorkerFields;
import ucm.server.protocol.WorkerFields.LendingMessage;
import ucm.server.protocol.WorkerFields.OpenedWorkerMessage;
import ucm.server.staging.StagingSegment;

/**
 * One engine at the daemon: from its first connection to the end of its last one. The first worker that
 * registers says what the KV cache is like; then the pipeline is there, and look-ups are answered as
 * soon as all ranks are. Thread-safe.
 */
public final class EngineSession implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(EngineSession.class);
  private static final String FIXED =
      "cannot change while the engine is connected: restart the engine to have it";
  // Stages register at about the same time, when all have allocated their KV caches.
  private static final long STAGE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Engines.Context context;
  private final EngineFields fields;
  private volatile UcmConfig config;
  private PoolUse pool = PoolUse.ANY;
  // Clients map segments by it, so that a segment of an engine that was here before is not taken
  // for this one.
  private final int generation = RANDOM.nextInt();

  /** How many have opened it and not ended yet; guarded by {@link Engines}. */
  int connections;

  // Guarded by this; read without it once set.
  private volatile @Nullable EngineBlocks blocks;
  // One worker of each stage, whether it is connected or not.
  private final Map<Integer, WorkerFields> stages = new TreeMap<>();
  private final BitSet connectedRanks = new BitSet();
  private volatile boolean ready;
  private final Set<SchedulerSession> schedulers = new LinkedHashSet<>();
  private final Map<Integer, WorkerCopies> deviceRanks = new TreeMap<>();
  private volatile @Nullable String ownGeneration;
  // Guarded by this: engines that start later are still to be told.
  private boolean mustDisown;
  private boolean closed;

  /**
   * A worker that has registered.
   *
   * @param rank its rank
   * @param answer what it is told
   * @param copies copies between its slots and its KV cache; null when the worker does that by itself
   * @param named its blocks when it names them by itself; else null
   */
  public record OpenedWorker(
      int rank,
      OpenedWorkerMessage answer,
      @Nullable WorkerCopies copies,
      @Nullable NamedBlocks named) {}

  EngineSession(Engines.Context context, EngineFields fields, UcmConfig config) {
    this.context = context;
    this.fields = fields;
    this.config = config;
  }

  EngineFields fields() {
    return fields;
  }

  int generation() {
    return generation;
  }

  /** What the engine has to know of its configuration; see {@link EngineSettings}. */
  public int settings() {
    return EngineSettings.bits(config.settings());
  }

  long now() {
    return context.clock().getAsLong();
  }

  /**
   * Registers a worker.
   *
   * @param identity what it said of its model
   * @throws ProtocolException when it is not as the engine said, its slots cannot be had, or workers of other
   *     stages do not come
   */
  public OpenedWorker openWorker(WorkerFields worker, IdentityMessage identity)
      throws ProtocolException {
    return openWorker(worker, identity, EngineBlocks.MOST_SLOTS);
  }

  private synchronized OpenedWorker openWorker(
      WorkerFields worker, IdentityMessage identity, int mostSlots) throws ProtocolException {
    int rank = worker.rank();
    requireRank(rank, worker.stage());
    if (connectedRanks.get(rank)) {
      // The engine may have come back before the end of its old connection is known here.
      throw notNow("has a worker of rank " + rank + " already");
    }
    try {
      EngineBlocks now = blocks;
      if (now == null) {
        now = firstOfStages(worker, identity, mostSlots);
      }
      requireSameBlocks(now, worker, identity);
      if (mustDisown) {
        now.disown();
        mustDisown = false;
      }
      StagingSegment segment = now.segment(part(rank));
      String hostReason = "";
      @Nullable WorkerCopies copies = null;
      try {
        copies = deviceCopies(worker, segment, now.loadSlots.lending());
      } catch (DeviceException e) {
        hostReason = String.valueOf(e.getMessage());
        LOG.warn("{}: rank {}: the worker copies, as {}", fields.instance(), rank, hostReason);
      }
      connectedRanks.set(rank);
      ready = connectedRanks.cardinality() == ranks(now.stages.size());
      LOG.info(
          "{}: rank {} of {} registered, {} slots of {} bytes, {} copies",
          fields.instance(),
          rank,
          ranks(now.stages.size()),
          segment.slots(),
          segment.stride(),
          copies == null ? "the worker" : "the daemon, " + copies.deviceName() + ",");
      OpenedWorkerMessage answer =
          new OpenedWorkerMessage(
              generation,
              segment.path().toString(),
              segment.byteSize(),
              segment.inode(),
              segment.slots(),
              segment.stride(),
              copies != null,
              hostReason,
              settings());
      return new OpenedWorker(rank, answer, copies, null);
    } catch (ConfigException | UnknownStageException | IllegalArgumentException e) {
      throw refused("cannot be served: " + e.getMessage());
    } catch (StoreException e) {
      // Memory that others have may come free, and a file system or a server come back.
      throw notNow("cannot be served now: " + e.getMessage());
    }
  }

  private int ranks(int stageCount) {
    return fields.tpSize() * stageCount;
  }

  /**
   * Says in which memory a worker can read blocks that the store has there.
   *
   * @param isMapped whether it has mapped that: blocks are lent when all have
   * @param readsPlaces whether it reads in its segment where blocks of slots lie
   */
  public synchronized LendingMessage lend(int rank, boolean isMapped, boolean readsPlaces) {
    EngineBlocks now = registered();
    // What is not pinned would be copied to a device by the processor.
    return deviceRanks.isEmpty() || now.loadSlots.isPinned()
        ? now.lend(rank, isMapped, readsPlaces)
        : LendingMessage.NONE;
  }

  private void requireRank(int rank, StageMessage stage) throws ProtocolException {
    int first = stage.stage() * fields.tpSize();
    if (rank < first || rank >= first + fields.tpSize()) {
      throw refused(
          "has ranks %s to %s in stage %s; found rank %s"
              .formatted(first, first + fields.tpSize() - 1, stage.stage(), rank));
    }
    int known =
        stages.values().stream()
            .mapToInt(worker -> worker.stage().stages())
            .findAny()
            .orElse(stage.stages());
    if (stage.stages() != known) {
      throw refused(
          "has %s stages; found %s at its rank %s".formatted(known, stage.stages(), rank));
    }
  }

  /**
   * The blocks, which are known when a worker of each stage has said what it has. Gives the lock back while it
   * waits for the others.
   */
  private EngineBlocks firstOfStages(WorkerFields worker, IdentityMessage identity, int mostSlots)
      throws ProtocolException {
    StageMessage stage = worker.stage();
    stages.putIfAbsent(stage.stage(), worker);
    notifyAll();
    long end = System.nanoTime() + STAGE_NANOS;
    while (stages.size() < stage.stages()) {
      long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      if (left <= 0 || closed) {
        throw notNow(
            "has %s stages; workers of %s have registered: waiting for the others"
                .formatted(stage.stages(), stages.keySet()));
      }
      try {
        wait(left);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw refused("is left, as the daemon ends");
      }
    }
    EngineBlocks now = blocks;
    if (now == null) {
      List<WorkerFields> all = List.copyOf(stages.values());
      pool = pool.by(all);
      config = pool.config(config);
      now = new EngineBlocks(context, fields, config, all, identity, mostSlots, generation);
      blocks = now;
    }
    return now;
  }

  /**
   * Registers the worker of an engine that names its blocks by itself.
   *
   * @throws ProtocolException as for {@link #openWorker}; or the engine has several ranks, or no bytes are
   *     kept
   */
  public OpenedWorker openNamed(NamedFields named, IdentityMessage identity)
      throws ProtocolException {
    if (fields.tpSize() != 1) {
      throw refused(
          "names its blocks by itself and has "
              + fields.tpSize()
              + " ranks: each rank is to be an engine of its own");
    }
    named();
    OpenedWorkerMessage answer = openWorker(named.worker(), identity, named.mostSlots()).answer();
    EngineBlocks now = registered();
    if (!now.pipeline.keepsBytes()) {
      closeWorker(0);
      throw refused(
          "names its blocks by itself, and "
              + now.pipeline.spec()
              + " keeps no bytes: configure a store that does, without use_lite");
    }
    return new OpenedWorker(
        0, answer, null, new NamedBlocks(fields.instance(), now, this::ownGeneration));
  }

  /** From now on the engine is one whose blocks are in slots of the host, and it may have many sizes. */
  private synchronized void named() {
    if (blocks == null) {
      pool = PoolUse.NAMED;
      config = pool.config(config);
    }
  }

  private void requireSameBlocks(EngineBlocks known, WorkerFields worker, IdentityMessage identity)
      throws ProtocolException {
    KvIdentity said =
        new KvIdentity(identity.config(), identity.weights(), known.identity.layout());
    if (!known.identity.equals(said)) {
      throw refused(
          String.format(
              "is another model at its rank %s than at the ranks before it: found %s, and %s there;"
                  + " all ranks are to load the same files with the same configuration",
              worker.rank(), said, known.identity));
    }
    String before = known.stages.get(worker.stage().stage()).blocks();
    if (!before.equals(worker.blocks())) {
      throw refused(
          String.format(
              "has blocks of %s; its rank %s has %s", before, worker.rank(), worker.blocks()));
    }
  }

  private boolean saves(int rank) {
    return !fields.mla() || rank % fields.tpSize() == 0;
  }

  /** Which part of blocks a rank has: with MLA, that of its stage. */
  private int part(int rank) {
    return fields.mla() ? rank / fields.tpSize() : rank;
  }

  private @Nullable WorkerCopies deviceCopies(
      WorkerFields worker, StagingSegment segment, @Nullable Lending lending) {
    DeviceFields device = worker.device();
    if (device == null) {
      return null;
    }
    WorkerCopies copies = WorkerCopies.open(context.devices(), device, worker, segment, lending);
    deviceRanks.put(worker.rank(), copies);
    return copies;
  }

  private ProtocolException refused(String what) {
    return new ProtocolException(
        ProtocolException.REFUSED_ENGINE, "engine " + fields.instance() + " " + what);
  }

  private ProtocolException notNow(String what) {
    return new ProtocolException(
        ProtocolException.NOT_NOW, "engine " + fields.instance() + " " + what);
  }

  /** A worker's connection has ended. It may still be copying; the daemon's copies have ended. */
  public synchronized void closeWorker(int rank) {
    connectedRanks.clear(rank);
    deviceRanks.remove(rank);
    ready = false;
    registered().loadSlots.endLending(rank);
    registered().workerIsGone(part(rank), saves(rank));
  }

  /**
   * A scheduler side for a connection, which ends it with {@link #closeScheduler}. There are two while an
   * engine comes back and its old connection is not closed yet.
   */
  public synchronized SchedulerSession openScheduler() {
    SchedulerSession scheduler = new SchedulerSession(this);
    schedulers.add(scheduler);
    return scheduler;
  }

  /** A scheduler's connection has ended. Its workers may still be copying what it promised. */
  public synchronized void closeScheduler(SchedulerSession scheduler) {
    if (schedulers.remove(scheduler)) {
      try {
        scheduler.close();
      } finally {
        // Its look-ups make no holds any more.
        EngineBlocks now = blocks;
        if (now != null) {
          now.abandon();
        }
      }
    }
  }

  /**
   * Nothing that was stored before is found by this engine any more, nor by engines of its model that start
   * later.
   *
   * @param own names the generation of the engine's blocks that begins
   * @throws ProtocolException when later engines cannot be told
   */
  public void reset(String own) throws ProtocolException {
    useGeneration(own);
    EngineBlocks now;
    synchronized (this) {
      now = blocks;
      mustDisown = now == null;
    }
    try {
      if (now != null) {
        now.disown();
      }
    } catch (StoreException e) {
      throw refused("finds nothing of what was stored; but " + e.getMessage());
    }
  }

  /** The engine goes on in a generation that it began earlier. */
  public void useGeneration(String own) {
    ownGeneration = own;
  }

  /** The generation of the engine's blocks since it disowned what was stored; null before that. */
  @Nullable String ownGeneration() {
    return ownGeneration;
  }

  /** What moves blocks; null as long as no rank has registered. */
  @Nullable EngineBlocks blocks() {
    return blocks;
  }

  /** The same; null also when a rank is not connected. */
  @Nullable EngineBlocks readyBlocks() {
    return ready ? blocks : null;
  }

  /** A worker has copied holds, or could not. */
  public void loaded(int rank, long[] copied, long[] failed) {
    EngineBlocks now = registered();
    now.holds.copied(rank, copied, true);
    if (failed.length > 0) {
      LOG.warn(
          "{}: rank {} could not load {} promised requests; what is computed from them is not"
              + " stored",
          fields.instance(),
          rank,
          failed.length);
      now.saves.dropAll();
      synchronized (this) {
        schedulers.forEach(SchedulerSession::loadFailed);
      }
      now.holds.copied(rank, failed, false);
    }
  }

  /** A worker has filled the slots of saves, or gives them up. */
  public void saved(int rank, long[] filled, long[] givenUp) {
    if (saves(rank)) {
      registered().saves.saved(part(rank), filled, true);
      registered().saves.saved(part(rank), givenUp, false);
    }
  }

  private EngineBlocks registered() {
    EngineBlocks now = blocks;
    if (now == null) {
      throw new IllegalStateException(fields.instance() + " has no worker yet");
    }
    return now;
  }

  /** The settings in force. */
  ConnectorSettings connectorSettings() {
    return config.settings();
  }

  /**
   * Takes the live values of another configuration.
   *
   * @return what people ask: by key, what was taken and what was not, and why
   */
  synchronized Map<String, Object> reload(UcmConfig asked) {
    UcmConfig inUse = config;
    List<ConfigKey<?>> keys = new ArrayList<>(context.keys(inUse));
    ConfigChange change = ConfigChange.of(inUse, pool.config(asked), keys);
    Map<String, String> refused = new LinkedHashMap<>();
    EngineBlocks now = blocks;
    if (now != null) {
      now.reload(change.merged())
          .forEach(problem -> refused.putIfAbsent(problem.key(), problem.message()));
    }
    ConnectorSettings settings = change.merged().settings();
    // Those of the process as well when they are the same words: the file that one names may have
    // changed.
    Set<String> ofProcess = new TreeSet<>(change.live().keySet());
    ofProcess.addAll(settings.ofProcess());
    refused.putAll(context.process().apply(settings, ofProcess));
    keys.addAll(ConnectorSettings.TOP_LEVEL);
    keys.removeIf(key -> !refused.containsKey(key.name()));
    UcmConfig inForce = change.without(inUse, keys);
    config = inForce;
    schedulers.forEach(scheduler -> scheduler.usePolicy(inForce.settings()));
    if (now != null) {
      now.reloaded(inForce);
    }
    Map<String, Object> taken = new LinkedHashMap<>();
    Map<String, Object> notTaken = new LinkedHashMap<>();
    change
        .live()
        .forEach(
            (key, values) -> {
              String why = refused.get(key);
              (why == null ? taken : notTaken).put(key, data(values, why));
            });
    change.fixed().forEach((key, values) -> notTaken.put(key, data(values, FIXED)));
    String metrics = ConnectorSettings.METRICS_CONFIG_PATH.name();
    if (refused.containsKey(metrics) && !change.live().containsKey(metrics)) {
      String file = settings.metricsConfigPath().map(Path::toString).orElse(null);
      notTaken.put(metrics, data(new Values(file, file), refused.get(metrics)));
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("engine", fields.instance());
    answer.put("taken", taken);
    answer.put("not_taken", notTaken);
    return answer;
  }

  private static Map<String, @Nullable Object> data(Values values, @Nullable String reason) {
    Map<String, @Nullable Object> data = new LinkedHashMap<>();
    data.put("from", values.from());
    data.put("to", values.to());
    if (reason != null) {
      data.put("reason", reason);
    }
    return data;
  }

  /** The configuration in force. */
  UcmConfig config() {
    return config;
  }

  /** Stores nothing of what was planned so far. */
  void dropSaves() {
    EngineBlocks now = blocks;
    if (now != null) {
      now.saves.dropAll();
    }
  }

  /** Waits until nothing is being saved; returns how many saves are left after that time. */
  int awaitSaves(Duration most) throws InterruptedException {
    EngineBlocks now = blocks;
    return now == null || now.saves.awaitNone(most) ? 0 : now.saves.size();
  }

  /** Ends what took too long. */
  synchronized void sweep() {
    EngineBlocks now = blocks;
    if (now != null) {
      now.sweep();
    }
    schedulers.forEach(SchedulerSession::sweep);
  }

  /** What people ask about it. */
  public synchronized Map<String, Object> status() {
    EngineBlocks now = blocks;
    Map<String, Object> status = new LinkedHashMap<>();
    status.put("engine", fields.instance());
    status.put("model", fields.model());
    status.put("configuration", fields.configName());
    status.put("tensor_parallel_size", fields.tpSize());
    status.put("pipeline_parallel_size", now == null ? 1 : now.stages.size());
    status.put("connected_ranks", connectedRanks.stream().boxed().toList());
    status.put("device_ranks", List.copyOf(deviceRanks.keySet()));
    HitStatistics hits = HitStatistics.NONE;
    int open = 0;
    for (SchedulerSession scheduler : schedulers) {
      hits = scheduler.statistics();
      open += scheduler.openRequests();
    }
    status.put("requests", hits.requests());
    status.put("prompt_blocks", hits.totalBlocks());
    status.put("device_hit_blocks", hits.hbmBlocks());
    status.put("external_hit_blocks", hits.externalBlocks());
    status.put("external_hit_rate", hits.externalHitRate());
    status.put("open_requests", open);
    if (now != null) {
      status.putAll(now.status());
    }
    return status;
  }

  /** Ends it: waits for what is being stored, and gives the slots back. Idempotent. */
  @Override
  public void close() {
    EngineBlocks now;
    synchronized (this) {
      if (!closed) {
        closed = true;
        notifyAll();
        ready = false;
        List.copyOf(schedulers).forEach(this::closeScheduler);
        deviceRanks.values().forEach(WorkerCopies::close);
      }
      now = blocks;
    }
    if (now != null) {
      now.close();
    }
  }
}
