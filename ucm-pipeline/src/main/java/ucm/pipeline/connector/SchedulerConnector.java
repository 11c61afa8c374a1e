package ucm.pipeline.connector;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.connector.statistics.ConnectorFaults;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.pipeline.connector.statistics.LiteMonitor;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.pipeline.connector.statistics.TraceRecorder;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/**
 * The scheduler side: says how much of a prompt need not be computed, and plans what each step of the
 * engine loads and saves. One for each engine, made by {@link ConnectorSetup}.
 *
 * <p>For each request: {@link #matchedTokens} until the engine has room for it, {@link #allocated}
 * with its blocks, {@link #plan} for every step, {@link #finished} at the end, whatever the end was.
 * After a preemption it begins again with {@link #matchedTokens}.
 *
 * <p>Used by one thread. Calls look into memory and ask the store; none waits for data to be moved.
 * Nothing is thrown because a store fails: the engine then computes. The wrong order of calls, or
 * arguments that contradict one another, are the caller's mistakes and are answered with {@link
 * IllegalStateException} or {@link IllegalArgumentException}.
 */
public final class SchedulerConnector implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SchedulerConnector.class);

  private final ConnectorSetup setup;
  private final EngineSpec spec;
  private final BlockHasher hasher;
  private volatile HitPolicy policy;
  private final PromptLookup.Ranks ranks;
  private final @Nullable LiteCache lite;
  private final @Nullable TraceRecorder traces;
  private final @Nullable LiteMonitor monitor;
  private final @Nullable Store owned;
  private final boolean keepsBytes;
  private final boolean savesGenerated;
  private final LookupStatistics statistics;
  private final Map<String, RequestState> requests = new HashMap<>();
  private String generation;
  private boolean closed;

  SchedulerConnector(
      ConnectorSetup setup, Store store, @Nullable Store owned, StageLookups lookups) {
    this.setup = setup;
    this.spec = setup.spec();
    this.generation = setup.generation();
    this.hasher = setup.hasher();
    this.policy = new HitPolicy(setup.settings(), spec.blockTokens());
    StoreMetrics metrics = setup.metrics(ConnectorSetup.SCHEDULER);
    ConnectorFaults faults = new ConnectorFaults("scheduler of " + spec.instance(), metrics);
    this.ranks = new PromptLookup.Ranks(store, hasher, spec.parts(), spec.groups(), faults);
    // A pipeline of its own was opened for blocks of one byte.
    KvLayout layout = owned == null ? spec.kv() : LiteCache.LAYOUT;
    this.lite = setup.settings().useLite() ? new LiteCache(store, layout, faults) : null;
    this.traces =
        setup.settings().enableRecordTraces()
            ? new TraceRecorder(spec, setup.traces(), metrics, SchedulerConnector::micros)
            : null;
    this.monitor =
        lite == null
            ? null
            : new LiteMonitor(spec, setup.traces().folder(), LiteMonitor.INTERVAL, metrics);
    this.owned = owned;
    this.keepsBytes = store.keepsBytes();
    this.savesGenerated = setup.settings().saveDecodeBlocks();
    if (!keepsBytes && lite == null) {
      LOG.warn(
          "{} keeps no bytes, so no hits are reported to the engine; set use_lite to count hits",
          store);
    }
    this.statistics = new LookupStatistics(metrics, spec, lookups, monitor);
  }

  private static long micros() {
    return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
  }

  /**
   * Says how many tokens can be loaded beyond those that are on the device. May be asked again as
   * long as the request is not scheduled; the last answer counts.
   *
   * <p>Only full blocks are found. When every token of the prompt is, the last one is left to compute,
   * because its logits are needed.
   *
   * @param computedTokens tokens whose KV cache is on the device already, whole blocks
   * @return 0 or more; all of it is loaded before the next step of the request computes anything
   */
  public int matchedTokens(PromptRequest request, int computedTokens) {
    PromptLookup begun = beginLookup(request, computedTokens);
    begun.askStore();
    return endLookup(begun);
  }

  /**
   * The first part of {@link #matchedTokens}, without the store. {@link PromptLookup#askStore} and {@link
   * #endLookup} are to follow; other requests, steps and look-ups may come between.
   */
  public PromptLookup beginLookup(PromptRequest request, int computedTokens) {
    return beginLookup(request, computedTokens, Integer.MAX_VALUE);
  }

  /**
   * The same, for a hybrid model: its hit ends where all groups have what is needed, so it cannot be cut
   * when it was found.
   *
   * @param mostBlocks more than these are not to be loaded; without a meaning for other models
   */
  public PromptLookup beginLookup(PromptRequest request, int computedTokens, int mostBlocks) {
    requireOpen();
    int tokens = request.tokens().length;
    if (computedTokens < 0 || computedTokens > tokens || computedTokens % spec.blockTokens() != 0) {
      throw new IllegalArgumentException(
          ("request %s: the tokens on the device are whole blocks of %s and at most"
                  + " the %s of the request; found %s")
              .formatted(request.id(), spec.blockTokens(), tokens, computedTokens));
    }
    RequestState state = requests.computeIfAbsent(request.id(), RequestState::new);
    state.forgetLoad();
    state.hbmBlocks = computedTokens / spec.blockTokens();
    state.skipped = policy.skips(tokens);
    BlockIds ids = BlockIds.empty();
    boolean first = false;
    if (state.skipped) {
      skip(state, request);
    } else {
      ids = ids(state, request);
      first = begin(state, request, ids);
    }
    PromptLookup begun =
        new PromptLookup(
            state,
            request,
            ids,
            first,
            statistics.before(),
            lite == null ? ranks : null,
            mostEnd(state, request, ids, mostBlocks));
    if (lite != null && begun.onDevice() < ids.size()) {
      // In the order of the requests, as each is a hit of those after it.
      begun.found(lite.run(ids, begun.onDevice()));
    }
    state.lookup = begun;
    return begun;
  }

  /** Where the hit of a hybrid model ends at the latest: the last token is computed by the engine. */
  private int mostEnd(RequestState state, PromptRequest request, BlockIds ids, int mostBlocks) {
    int rest = ids.size() - Math.min(state.hbmBlocks, ids.size());
    int most = policy.withinRatio(state.hbmBlocks, rest, request.promptTokens());
    int before = Math.max(0, request.tokens().length - 1) / spec.blockTokens();
    return Math.min(before, state.hbmBlocks + Math.min(most, mostBlocks));
  }

  /** Whether the request of a look-up still waits for it: it has not ended, moved on or asked again. */
  public boolean isAwaited(PromptLookup begun) {
    return requests.get(begun.state.id) == begun.state && begun.state.lookup == begun;
  }

  /**
   * The last part of {@link #matchedTokens}.
   *
   * @return 0 also when the look-up is not awaited any more
   */
  public int endLookup(PromptLookup begun) {
    requireOpen();
    boolean log = statistics.count(begun);
    if (!isAwaited(begun)) {
      return 0;
    }
    RequestState state = begun.state;
    state.lookup = null;
    int found = begun.found();
    int offered = lite != null || !keepsBytes ? 0 : offer(state, begun.request, found, log);
    if (begun.first) {
      statistics.declined(found - (state.loadTo - state.loadFrom));
    }
    return offered;
  }

  private void skip(RequestState state, PromptRequest request) {
    BlockIds ids = traces == null ? BlockIds.empty() : ids(state, request);
    if (begin(state, request, ids)) {
      statistics.skipped(request.tokens().length);
      LOG.info(
          "request_id: {}, {} tokens are fewer than persist_token_threshold {}: look-up, load and"
              + " dump are skipped",
          request.id(),
          request.tokens().length,
          policy.persistTokens());
    }
  }

  private BlockIds ids(RequestState state, PromptRequest request) {
    PromptVariant variant = request.variant().inGeneration(generation);
    return state.ids(request, variant, hasher, spec.blockTokens());
  }

  /**
   * Disowns all that was stored so far: the engine's weights have changed since they were loaded. From now
   * on this engine has blocks of its own. Engines of this model that start later do not find the old
   * blocks either, nor those of this engine, whose weights they may not have; engines that run already go
   * on as before. Requests that are open are to be looked up again.
   *
   * @throws StoreException when later engines cannot be told, as no directory of blocks can be written;
   *     this engine finds nothing all the same
   */
  public void reset() {
    requireOpen();
    useGeneration(UUID.randomUUID().toString());
    setup.disown();
  }

  /**
   * Goes on in a generation that the engine began earlier with another connector.
   *
   * @param own unique, made when the engine's weights changed
   */
  public void useGeneration(String own) {
    generation = own;
  }

  /** From now on, how much of what is found is used is what these settings say; in lite mode nothing changes. */
  public void usePolicy(ConnectorSettings settings) {
    policy = new HitPolicy(settings, spec.blockTokens());
  }

  /** Records a request in the trace when it is new; says whether it is. */
  private boolean begin(RequestState state, PromptRequest request, BlockIds ids) {
    boolean first = !state.known;
    state.known = true;
    if (first && traces != null) {
      traces.record(request.id(), request.promptTokens(), request.maxOutputTokens(), ids);
    }
    return first;
  }

  /** Decides how much of what was found is loaded, and remembers it. */
  private int offer(RequestState state, PromptRequest request, int found, boolean log) {
    int taken = policy.withinRatio(state.hbmBlocks, found, request.promptTokens());
    if (log && taken < found) {
      LOG.info(
          "request_id: {}, hit_ratio {} of {} prompt tokens: {} of {} external hit blocks are used",
          request.id(),
          policy.hitRatio(),
          request.promptTokens(),
          taken,
          found);
    }
    int tokens = taken * spec.blockTokens();
    if (taken > 0 && !policy.isWorthLoading(tokens)) {
      if (log) {
        LOG.info(
            "request_id: {}, {} external hit tokens do not exceed load_tokens_threshold {}: they"
                + " are not loaded",
            request.id(),
            tokens,
            policy.loadTokens());
      }
      return 0;
    }
    boolean all = state.hbmBlocks * spec.blockTokens() + tokens == request.tokens().length;
    int offered = all ? Math.max(0, tokens - 1) : tokens;
    state.loadFrom = state.hbmBlocks;
    state.loadTo = offered == 0 ? state.hbmBlocks : state.hbmBlocks + taken;
    state.offeredTokens = offered;
    return offered;
  }

  /**
   * Tells of the blocks that the engine allocated for a request, in the order of its tokens, those on
   * the device already first. Replaces what was told before.
   *
   * @param blocks the request's block table; copied
   * @param externalTokens how many of the tokens that {@link #matchedTokens} offered the engine takes
   *     from outside; 0 to compute them instead
   */
  public void allocated(String requestId, int[] blocks, int externalTokens) {
    requireOpen();
    RequestState state = requests.get(requestId);
    if (state == null) {
      throw new IllegalStateException(
          "request " + requestId + " is unknown: ask matchedTokens() before allocated()");
    }
    state.lookup = null;
    if (externalTokens < 0 || externalTokens > state.offeredTokens) {
      throw new IllegalArgumentException(
          "request %s: %s external tokens were offered; the engine takes %s"
              .formatted(requestId, state.offeredTokens, externalTokens));
    }
    if (externalTokens < state.offeredTokens) {
      state.loadTo = state.loadFrom + Math.ceilDiv(externalTokens, spec.blockTokens());
    }
    state.table(blocks);
    state.blocks(state.loadFrom, state.loadTo);
    state.offeredTokens = 0;
  }

  /**
   * Tells of generated tokens, so that {@link #plan} saves the blocks that they complete. Does nothing
   * unless {@code save_decode_blocks} is set.
   *
   * @param tokens those after the tokens of the last look-up and of earlier calls
   */
  public void generated(String requestId, int[] tokens) {
    requireOpen();
    RequestState state = requests.get(requestId);
    if (savesGenerated && state != null && !state.skipped) {
      state.generated(tokens, hasher, spec.blockTokens());
    }
  }

  /**
   * Plans a step: what each request loads before it, and which blocks are complete after it. A request
   * loads once, in its first step after {@link #allocated}; of a prompt that is computed in chunks,
   * each step saves the blocks that it completes. Generated tokens are not saved unless {@link
   * #generated} tells of them.
   *
   * @param scheduled the requests of the step; unknown ones, which were never looked up, move nothing
   */
  public StepPlan plan(List<ScheduledRequest> scheduled) {
    requireOpen();
    if (lite != null) {
      return StepPlan.EMPTY;
    }
    List<RequestPlan> plans = new ArrayList<>(scheduled.size());
    for (ScheduledRequest request : scheduled) {
      RequestState state = requests.get(request.requestId());
      if (state != null && !state.skipped) {
        RequestPlan plan = plan(state, request);
        if (plan.loadBlocks().length + plan.saveBlocks().length > 0) {
          plans.add(plan);
        }
      }
    }
    return plans.isEmpty() ? StepPlan.EMPTY : new StepPlan(plans);
  }

  private RequestPlan plan(RequestState state, ScheduledRequest request) {
    int blockTokens = spec.blockTokens();
    if (state.offeredTokens > 0 && request.computedTokens() > state.hbmBlocks * blockTokens) {
      throw new IllegalStateException(
          "request %s is scheduled as if %s tokens had been loaded: tell allocated() first"
              .formatted(state.id, state.offeredTokens));
    }
    if (request.resumed()) {
      state.table(request.newBlocks());
    } else {
      state.append(request.newBlocks());
    }
    BlockIds ids = state.ids();
    int loadFrom = state.loadFrom;
    // An offer that was never answered is not taken.
    int loadTo = state.offeredTokens > 0 ? loadFrom : state.loadTo;
    state.forgetLoad();
    state.lookup = null;
    int saveTo =
        Math.min(ids.size(), (request.computedTokens() + request.newTokens()) / blockTokens);
    int saveFrom = Math.min(saveTo, request.computedTokens() / blockTokens);
    if (loadFrom < loadTo) {
      // Of a full hit, the last block is loaded and its last token computed once more.
      saveFrom = Math.clamp(loadTo, saveFrom, saveTo);
    }
    BlockIds saved = ids.slice(saveFrom, saveTo);
    statistics.stores(saved);
    return new RequestPlan(
        state.id,
        ids.slice(loadFrom, loadTo),
        state.blocks(loadFrom, loadTo),
        saved,
        state.blocks(saveFrom, saveTo),
        state.blocks(0, saveFrom == saveTo ? 0 : saveFrom));
  }

  /**
   * Forgets a request that has ended: finished, aborted, or refused. Unknown ones are ignored. Blocks
   * that a step saves are out of the engine's memory when the step ends, so the engine may free its
   * blocks at once.
   */
  public void finished(String requestId) {
    requests.remove(requestId);
  }

  /** The ids of a request's full blocks, as rank 0 names them; none when it is unknown. */
  public BlockIds ids(String requestId) {
    RequestState state = requests.get(requestId);
    return state == null ? BlockIds.empty() : state.ids();
  }

  /** How many requests are remembered. */
  public int openRequests() {
    return requests.size();
  }

  /** What the look-ups found so far. */
  public HitStatistics statistics() {
    return statistics.sums();
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the scheduler side of " + spec.instance() + " is closed");
    }
  }

  /** Writes the traces that wait, and closes the pipeline unless it is shared. Idempotent. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    requests.clear();
    try {
      if (monitor != null) {
        monitor.close();
      }
      if (traces != null) {
        traces.close();
      }
    } finally {
      if (owned != null) {
        owned.close();
      }
    }
  }
}
