package ucm.server.session;

import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.BitSet;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.device.DeviceException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.server.device.DeviceCopies;
import ucm.server.protocol.DeviceFields;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.WorkerFields;
import ucm.server.staging.SlotPool;
import ucm.server.staging.StagingSegment;

/**
 * One engine at the daemon: from its first connection to the end of its last one. The first worker that
 * registers says what the KV cache is like; then the pipeline is there, and look-ups are answered as
 * soon as all ranks are. Thread-safe.
 */
public final class EngineSession implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(EngineSession.class);
  private static final int MOST_SLOTS = 1024;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final ServerContext context;
  private final EngineFields fields;
  private final UcmConfig config;
  // Clients map segments by it, so that a segment of an engine that was here before is not taken
  // for this one.
  private final int generation = RANDOM.nextInt();
  private final AtomicInteger segments = new AtomicInteger();

  // Guarded by this; read without it once set.
  private volatile @Nullable Registered registered;
  private final BitSet connectedRanks = new BitSet();
  private volatile boolean ready;
  private final Set<SchedulerSession> schedulers = new LinkedHashSet<>();
  private final Map<Integer, DeviceCopies> deviceRanks = new TreeMap<>();
  private @Nullable String resetText;
  private boolean closed;

  /**
   * A worker's slots, and who copies them.
   *
   * @param segment its slots; the same as those of the other ranks with MLA
   * @param copies copies between them and the KV cache; null when the worker does that by itself
   * @param hostReason why the daemon does not copy although it was asked to; else empty
   */
  public record OpenedWorker(
      StagingSegment segment, @Nullable DeviceCopies copies, String hostReason) {}

  /** What there is once the KV cache is known. */
  private record Registered(
      ConnectorSetup setup,
      KvLayout layout,
      String layoutText,
      SharedPipelines.Key key,
      Pipeline pipeline,
      SlotPool slots,
      Quarantine quarantine,
      Holds holds,
      Saves saves,
      Map<Integer, RankTransfers> transfers) {}

  EngineSession(ServerContext context, EngineFields fields, UcmConfig config) {
    this.context = context;
    this.fields = fields;
    this.config = config;
  }

  EngineFields fields() {
    return fields;
  }

  /** Tells slots of this session from those of others, in what a worker is told. */
  public int generation() {
    return generation;
  }

  /** Whether the engine is to tell of generated tokens. */
  public boolean savesGenerated() {
    return config.settings().saveDecodeBlocks();
  }

  long now() {
    return context.clock().getAsLong();
  }

  EngineSpec spec() {
    return spec(registered().layout());
  }

  private EngineSpec spec(KvLayout layout) {
    return new EngineSpec(
        fields.instance(),
        fields.model(),
        fields.dtype(),
        fields.tpSize(),
        fields.mla(),
        fields.blockTokens(),
        layout);
  }

  /**
   * Registers a worker.
   *
   * @throws ProtocolException when it is not as the engine said, or its slots cannot be had
   */
  public synchronized OpenedWorker openWorker(WorkerFields worker) throws ProtocolException {
    int rank = worker.rank();
    KvLayout layout = worker.layout();
    String layoutText = worker.layoutText();
    if (rank >= fields.tpSize()) {
      throw refused("has ranks 0 to " + (fields.tpSize() - 1) + "; found rank " + rank);
    }
    if (connectedRanks.get(rank)) {
      throw refused("has a worker of rank " + rank + " already");
    }
    try {
      Registered now = registered;
      if (now == null) {
        now = register(layout, layoutText);
        registered = now;
      }
      if (!now.layout.equals(layout) || !now.layoutText.equals(layoutText)) {
        throw refused(
            "has blocks of "
                + now.layout
                + now.layoutText
                + "; its rank "
                + rank
                + " has "
                + layout
                + layoutText);
      }
      int part = fields.mla() ? 0 : rank;
      RankTransfers transfers = now.transfers.get(part);
      if (transfers == null) {
        transfers = transfers(now, part);
        now.transfers.put(part, transfers);
      }
      OpenedWorker opened = open(worker, transfers.segment());
      connectedRanks.set(rank);
      ready = connectedRanks.cardinality() == fields.tpSize();
      LOG.info(
          "{}: rank {} of {} registered, {} slots of {} bytes, {} copies",
          fields.instance(),
          rank,
          fields.tpSize(),
          now.slots.size(),
          transfers.segment().stride(),
          opened.copies == null ? "the worker" : "the daemon, " + opened.copies.deviceName() + ",");
      return opened;
    } catch (StoreException | IllegalArgumentException e) {
      throw refused("cannot be served: " + e.getMessage());
    }
  }

  private OpenedWorker open(WorkerFields worker, StagingSegment segment) {
    DeviceFields device = worker.device();
    if (device == null) {
      return new OpenedWorker(segment, null, "");
    }
    try {
      DeviceCopies copies =
          DeviceCopies.open(context.devices(), device, worker.layout(), segment, worker.rank());
      deviceRanks.put(worker.rank(), copies);
      return new OpenedWorker(segment, copies, "");
    } catch (DeviceException e) {
      String reason = String.valueOf(e.getMessage());
      LOG.warn("{}: rank {}: the worker copies, as {}", fields.instance(), worker.rank(), reason);
      return new OpenedWorker(segment, null, reason);
    }
  }

  private Registered register(KvLayout layout, String layoutText) {
    ConnectorSetup setup =
        ConnectorSetup.of(config, context.catalog(), spec(layout))
            .withMetricsScopes(context.metrics());
    SharedPipelines.Key key = new SharedPipelines.Key(fields.config(), layout);
    Pipeline pipeline = context.pipelines().acquire(key, setup);
    int parts = fields.mla() ? 1 : fields.tpSize();
    long bytes = context.stagingBytes() / parts / StagingSegment.strideOf(layout);
    SlotPool slots = new SlotPool(Math.clamp(bytes, 1, MOST_SLOTS));
    Quarantine quarantine = new Quarantine(slots, context.clock());
    Map<Integer, RankTransfers> transfers = new ConcurrentHashMap<>();
    return new Registered(
        setup,
        layout,
        layoutText,
        key,
        pipeline,
        slots,
        quarantine,
        new Holds(slots, quarantine, fields.tpSize(), context.clock()),
        new Saves(slots, quarantine, parts, transfers::get, context.clock()),
        transfers);
  }

  private RankTransfers transfers(Registered now, int part) {
    Path path = context.segmentPath(generation, segments.getAndIncrement());
    StagingSegment segment = StagingSegment.create(path, now.layout, now.slots.size());
    return new RankTransfers(now.setup, part, now.layout.layers(), segment, now.pipeline);
  }

  private ProtocolException refused(String what) {
    return new ProtocolException(
        ProtocolException.REFUSED_ENGINE, "engine " + fields.instance() + " " + what);
  }

  /** A worker's connection has ended. It may still be copying; the daemon's copies have ended. */
  public synchronized void closeWorker(int rank) {
    connectedRanks.clear(rank);
    deviceRanks.remove(rank);
    ready = false;
    abandon();
  }

  private void abandon() {
    Registered now = registered;
    if (now != null) {
      now.holds.abandonAll();
      now.saves.abandonAll();
    }
  }

  /**
   * A scheduler side for a connection, which ends it with {@link #closeScheduler}; null as long as not
   * all ranks have registered. There are two while an engine comes back and its old connection is not
   * closed yet.
   */
  public synchronized @Nullable SchedulerSession openScheduler() {
    Registered now = registered;
    if (!ready || now == null) {
      return null;
    }
    SchedulerSession scheduler = new SchedulerSession(this, now.setup.scheduler(now.pipeline));
    schedulers.add(scheduler);
    return scheduler;
  }

  /** A scheduler's connection has ended. Its workers may still be copying what it promised. */
  public synchronized void closeScheduler(SchedulerSession scheduler) {
    if (schedulers.remove(scheduler)) {
      abandon();
      scheduler.close();
    }
  }

  /** Nothing that was stored before is found by this engine any more. */
  public synchronized void reset(String unique) {
    resetText = "reset:" + unique;
  }

  /** What is hashed since the last reset; null before one. */
  synchronized @Nullable String resetText() {
    return resetText;
  }

  /** A worker has copied holds, or could not. */
  public void loaded(int rank, long[] copied, long[] failed) {
    Registered now = registered();
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
    if (fields.mla() && rank != 0) {
      return;
    }
    registered().saves.saved(rank, filled, true);
    registered().saves.saved(rank, givenUp, false);
  }

  /**
   * Loads blocks into the slots of all ranks.
   *
   * @param done gets how many of the first blocks all ranks have; called once, by any thread
   */
  void load(String requestId, BlockIds ids, int[] slots, IntConsumer done) {
    // All ranks have registered when something is looked up.
    Collection<RankTransfers> all = registered().transfers.values();
    AtomicInteger left = new AtomicInteger(all.size());
    AtomicInteger there = new AtomicInteger(ids.size());
    for (RankTransfers one : all) {
      one.load(
          requestId,
          ids,
          slots,
          count -> {
            there.accumulateAndGet(count, Math::min);
            if (left.decrementAndGet() == 0) {
              done.accept(there.get());
            }
          });
    }
  }

  String layoutText() {
    return registered().layoutText;
  }

  /** Whether all ranks are connected. */
  public boolean isReady() {
    return ready;
  }

  SlotPool slots() {
    return registered().slots;
  }

  Holds holds() {
    return registered().holds;
  }

  Saves saves() {
    return registered().saves;
  }

  private Registered registered() {
    Registered now = registered;
    if (now == null) {
      throw new IllegalStateException(fields.instance() + " has no worker yet");
    }
    return now;
  }

  /** Ends what took too long. */
  synchronized void sweep() {
    Registered now = registered;
    if (now != null) {
      now.holds.sweep();
      now.saves.sweep();
      now.quarantine.sweep();
    }
    schedulers.forEach(SchedulerSession::sweep);
  }

  /** What people ask about it. */
  public synchronized Map<String, Object> status() {
    Map<String, Object> status = new LinkedHashMap<>();
    status.put("engine", fields.instance());
    status.put("model", fields.model());
    status.put("tensor_parallel_size", fields.tpSize());
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
    Registered now = registered;
    if (now != null) {
      status.put("pipeline", now.pipeline.spec().toString());
      status.put("slots", now.slots.size());
      status.put("free_slots", now.slots.free());
      status.put("resting_slots", now.quarantine.size());
      status.put("slot_bytes", StagingSegment.strideOf(now.layout));
      status.put("holds", now.holds.size());
      status.put("saves", now.saves.size());
      status.put("stored_blocks", now.saves.storedBlocks());
    }
    return status;
  }

  /** Ends it: waits for what is being stored, and gives the slots back. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    ready = false;
    List.copyOf(schedulers).forEach(this::closeScheduler);
    deviceRanks.values().forEach(DeviceCopies::close);
    Registered now = registered;
    if (now != null) {
      abandon();
      now.transfers.values().forEach(RankTransfers::close);
      context.pipelines().release(now.key);
    }
  }
}
