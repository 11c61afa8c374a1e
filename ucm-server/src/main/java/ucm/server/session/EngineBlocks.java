package ucm.server.session;

import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvIdentity;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.GroupsMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.protocol.WorkerFields;
import ucm.server.protocol.WorkerFields.LendingMessage;
import ucm.server.staging.StagingSegment;
import ucm.server.staging.StagingSlots;

/**
 * What moves the blocks of an engine whose KV cache is known: its pipeline, its slots, what is promised of
 * them and what is saved through them. Thread-safe.
 */
final class EngineBlocks implements AutoCloseable {

  static final int MOST_SLOTS = 1024;

  /** Of a slot, which is as large as a block of any stage. */
  final KvLayout layout;

  /** What the workers have said of themselves, for each stage. */
  final List<WorkerFields> stages;

  final GroupBlocks groups;
  final KvIdentity identity;
  final int blockTokens;
  final StagingSlots slots;
  final LoadSlots loadSlots;
  final Holds holds;
  final Saves saves;
  final Pipeline pipeline;
  final Admission admission;

  private final Engines.Context context;
  private final int generation;
  private final ConnectorSetup setup;
  private final Map<Integer, RankTransfers> transfers = new ConcurrentHashMap<>();
  // Whether ranks have blocks of their own, and so read elsewhere what was promised in one slot.
  private final boolean hasParts;
  private boolean closed;

  /**
   * Opens the pipeline, or joins those who use it.
   *
   * @param stages one worker of each stage
   * @param said what one of them says of its model
   * @param mostSlots so many slots are enough
   * @param generation names segments
   * @throws ucm.api.StoreException when the pipeline cannot be opened
   * @throws ProtocolException when its groups are none
   */
  EngineBlocks(
      Engines.Context context,
      EngineFields engine,
      UcmConfig config,
      List<WorkerFields> stages,
      IdentityMessage said,
      int mostSlots,
      int generation)
      throws ProtocolException {
    this.context = context;
    this.generation = generation;
    this.stages = List.copyOf(stages);
    layout =
        stages.stream()
            .map(worker -> worker.groups().slot(worker.layout()))
            .max(Comparator.comparingLong(StagingSegment::strideOf))
            .orElseThrow();
    KvGroups rules = GroupsMessage.rules(stages, engine.blockTokens());
    identity = new KvIdentity(said.config(), said.weights(), layoutText(stages));
    blockTokens = engine.blockTokens();
    EngineSpec spec =
        new EngineSpec(
            engine.instance(),
            engine.model(),
            engine.dtype(),
            engine.tpSize(),
            stages.size(),
            engine.mla(),
            blockTokens,
            layout,
            identity,
            rules);
    setup =
        ConnectorSetup.of(config, context.catalog(), spec)
            .withMetricsScopes(context.metrics())
            .withGenerations(context.generations());
    // Throws here when it cannot be read.
    String _ = setup.generation();
    pipeline = context.pipelines().acquire(config, layout, setup);
    admission = context.admission();
    int parts = spec.parts();
    long most = context.stagingBytes() / parts / StagingSegment.strideOf(layout);
    // A block of the prompt has a slot for each group.
    int groupCount = Math.max(1, rules.all().size());
    int mostOfAll = Math.min(mostSlots, MOST_SLOTS) * groupCount;
    slots = new StagingSlots(Math.clamp(most, 1, mostOfAll), context.clock(), this::freed);
    groups = new GroupBlocks(rules, setup.hasher(), parts, slots.size());
    loadSlots = new LoadSlots(slots, pipeline.stages().getFirst(), spec.ranks());
    hasParts = parts > 1;
    holds = new Holds(loadSlots, spec.ranks(), context.clock());
    saves = new Saves(slots, parts, transfers::get, admission, context.clock());
  }

  /** What blocks are like; where there are stages, which layers each has and what its blocks are like. */
  private static String layoutText(List<WorkerFields> stages) {
    return stages.size() == 1
        ? stages.getFirst().layoutText()
        : stages.stream()
            .map(worker -> worker.layout().layers() + " layers " + worker.layoutText())
            .collect(Collectors.joining("; ", "stages: ", ""));
  }

  /**
   * Has the pipeline take the live values of another configuration.
   *
   * @return what could not be taken, and why
   */
  List<ConfigProblem> reload(UcmConfig changed) {
    return setup.reload(pipeline, changed);
  }

  /** Those who have this configuration share the pipeline from now on. */
  void reloaded(UcmConfig config) {
    context.pipelines().reloaded(pipeline, config, layout);
  }

  /** What is in force of {@code model_fingerprint}. */
  String fingerprint() {
    return identity.inForce(setup.settings().modelFingerprint()).word();
  }

  /** What tells the model from others, for an engine that names its blocks by itself. */
  String nameOfModel() {
    return setup.modelName();
  }

  /** The generation with which the engine started. */
  String generation() {
    return setup.generation();
  }

  /** Has engines of the model that start later find nothing of what was stored. */
  void disown() {
    setup.disown();
  }

  /**
   * The slots of a part of the blocks, made when they are asked for first.
   *
   * @throws ucm.api.StoreException when there is not enough shared memory
   */
  StagingSegment segment(int part) {
    return transfers.computeIfAbsent(part, this::open).segment();
  }

  private RankTransfers open(int part) {
    StagingSegment segment =
        StagingSegment.create(context.segmentPath(generation, part), layout, slots.size());
    return new RankTransfers(setup, part, layout.blockLayout(), segment, pipeline);
  }

  /** How many blocks of a hybrid model's prompt can be loaded with the slots that are free. */
  int mostBlocks() {
    return groups.mostBlocks(slots.freeForLoads());
  }

  /** A scheduler side that looks into the pipeline. */
  SchedulerConnector scheduler() {
    return setup.scheduler(pipeline);
  }

  /** Gets blocks that were loaded. */
  interface Loaded {

    /**
     * Called once, by any thread.
     *
     * @param slots of the first blocks, the caller's now; fewer than all when no slot was free, or a block could
     *     not be loaded
     * @param isBroken whether a block could not be loaded
     */
    void loaded(int[] slots, boolean isBroken);
  }

  /**
   * Says in which memory a worker can read blocks that the store has there.
   *
   * @param isMapped whether it has mapped that
   * @param readsPlaces whether it reads in its segment where blocks of slots lie, as it must where ranks have parts
   */
  LendingMessage lend(int rank, boolean isMapped, boolean readsPlaces) {
    if (hasParts && !readsPlaces) {
      return LendingMessage.NONE;
    }
    // It is the same in all segments.
    return loadSlots.lend(rank, isMapped, hasParts ? segment(0).placesAt() : 0);
  }

  /** Slots are free: what a store has lent for them is its own again. */
  private void freed(int[] some) {
    if (hasParts) {
      transfers.values().forEach(part -> loadSlots.giveBack(part.segment().unplace(some)));
    }
  }

  /** Brings blocks into slots of all ranks, which have registered, or has a store lend them where they are. */
  void load(String requestId, BlockIds ids, Loaded done) {
    if (hasParts) {
      fill(requestId, ids, new int[0], done);
      return;
    }
    int[] borrowed = loadSlots.borrow(ids);
    if (borrowed.length > 0) {
      transfers.values().forEach(part -> part.borrowed(borrowed.length));
    }
    BlockIds others = ids.slice(borrowed.length, ids.size());
    if (others.size() == 0) {
      done.loaded(borrowed, false);
    } else if (loadSlots.lends()) {
      // All ranks have the same blocks.
      RankTransfers part = transfers.values().iterator().next();
      part.fetch(
          requestId,
          others,
          loadSlots,
          fetched -> fill(requestId, ids, joined(borrowed, fetched), done));
    } else {
      fill(requestId, ids, borrowed, done);
    }
  }

  /** Loads what is behind the first blocks into slots of the segments. */
  private void fill(String requestId, BlockIds ids, int[] first, Loaded done) {
    int[] taken = loadSlots.take(ids.size() - first.length);
    if (taken.length == 0) {
      done.loaded(first, false);
      return;
    }
    BlockIds wanted = ids.slice(first.length, first.length + taken.length);
    AtomicInteger left = new AtomicInteger(transfers.size());
    AtomicInteger there = new AtomicInteger(taken.length);
    IntConsumer ended =
        count -> {
          there.accumulateAndGet(count, Math::min);
          if (left.decrementAndGet() == 0) {
            int loaded = there.get();
            loadSlots.give(Arrays.copyOfRange(taken, loaded, taken.length));
            done.loaded(joined(first, Arrays.copyOf(taken, loaded)), loaded < taken.length);
          }
        };
    LoadSlots lending = hasParts ? loadSlots : null;
    transfers.values().forEach(part -> part.load(requestId, wanted, taken, lending, ended));
  }

  private static int[] joined(int[] first, int[] second) {
    return IntStream.concat(IntStream.of(first), IntStream.of(second)).toArray();
  }

  /** What people ask about it. */
  Map<String, Object> status() {
    // Before the free slots: those of what has ended are among them then.
    int held = holds.size();
    int saving = saves.size();
    Map<String, Object> status = new LinkedHashMap<>();
    status.put("model_fingerprint", fingerprint());
    status.put("pipeline", pipeline.spec().toString());
    status.put("slots", slots.size());
    status.put("free_slots", slots.free());
    status.put("resting_slots", slots.resting());
    status.put("slot_bytes", StagingSegment.strideOf(layout));
    status.put("reads_in_place", loadSlots.lends());
    status.put("holds", held);
    status.put("saves", saving);
    status.put("stored_blocks", saves.storedBlocks());
    return status;
  }

  /**
   * A worker is gone, which may still be copying.
   *
   * @param writes whether it is the one that fills the slots of the part
   */
  void workerIsGone(int part, boolean writes) {
    if (writes) {
      segment(part).clearMarks();
    }
    abandon();
  }

  /** A client is gone, which may still be copying: nothing is promised and saved any more. */
  void abandon() {
    holds.abandonAll();
    saves.abandonAll();
  }

  /** Ends what took too long. */
  void sweep() {
    holds.sweep();
    saves.sweep();
    slots.sweep(
        slot -> transfers.values().stream().anyMatch(part -> part.segment().isMarked(slot)));
  }

  /** Waits for what is being stored, and removes the slots. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    abandon();
    int[] all = IntStream.range(0, slots.size()).toArray();
    for (RankTransfers part : transfers.values()) {
      part.close();
      // Its worker may still be reading there.
      loadSlots.giveLater(part.segment().unplace(all));
    }
    context.pipelines().release(pipeline);
  }
}
