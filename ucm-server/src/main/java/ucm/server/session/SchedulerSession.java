package ucm.server.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.PromptLookup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.LookupMessage.FoundMessage;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.session.GroupBlocks.Wanted;
import ucm.server.session.Holds.Hold;
import ucm.server.session.LookupTask.Offer;

/**
 * The scheduler side of an engine. A look-up brings what it finds into slots of all ranks before it is
 * answered, so that what is promised needs nothing but a copy. The engine's own block numbers stay in
 * the engine: here the n-th block of a request is block n. As long as not all ranks are connected,
 * nothing is found and nothing is saved.
 *
 * <p>A load that failed on one rank spoils what all ranks compute from it. What was planned until the
 * engine has handled that is not stored, and requests that it knew by then are not saved any more.
 *
 * <p>Messages come from the thread of the scheduler's connection. Look-ups are answered by other threads.
 * Thread-safe. Nothing that takes long is done under the lock.
 */
public final class SchedulerSession implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SchedulerSession.class);
  private static final long ERROR_NANOS = TimeUnit.SECONDS.toNanos(60);

  private static final int LOOKUP_THREADS = 4;
  private static final int MOST_WAITING = 1024;
  private static final long IDLE_SECONDS = 30;

  private final EngineSession engine;
  private final ThreadPoolExecutor executor =
      new ThreadPoolExecutor(
          LOOKUP_THREADS,
          LOOKUP_THREADS,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new ArrayBlockingQueue<>(MOST_WAITING),
          Thread.ofPlatform().daemon().name("ucm-serve-lookup-", 0).factory());
  // Guarded by this, as is what is in them.
  private final Map<Integer, RequestEntry> requests = new HashMap<>();
  private final Map<String, Integer> handles = new HashMap<>();
  // Made when all ranks are there for the first time.
  private @Nullable SchedulerConnector connector;
  // Odd while a failed load is not handled by the engine.
  private final AtomicInteger errorEpoch = new AtomicInteger();
  private volatile long errorNanos;
  private boolean closed;

  SchedulerSession(EngineSession engine) {
    this.engine = engine;
    executor.allowCoreThreadTimeOut(true);
  }

  private SchedulerConnector connector(EngineBlocks blocks) {
    SchedulerConnector made = connector;
    if (made == null) {
      made = blocks.scheduler();
      made.usePolicy(engine.connectorSettings());
      connector = made;
    }
    return made;
  }

  /**
   * Looks a prompt up, in a thread of its own: what the connection's thread does next does not wait for the
   * store. A request that ends, is scheduled or is looked up again meanwhile is promised nothing by this.
   *
   * @param answer called once, by any thread
   */
  public void lookup(LookupMessage message, Consumer<FoundMessage> answer)
      throws ProtocolException {
    EngineBlocks blocks = engine.readyBlocks();
    if (blocks == null) {
      answer.accept(FoundMessage.nothing(message.handle(), engine.generation(), 0, 0));
      return;
    }
    LookupTask task = begin(blocks, message, answer);
    try {
      executor.execute(task);
    } catch (RejectedExecutionException e) {
      LOG.debug("a look-up is not made, as {} wait already", MOST_WAITING);
      task.findNothing(0);
    }
  }

  private synchronized LookupTask begin(
      EngineBlocks blocks, LookupMessage message, Consumer<FoundMessage> answer)
      throws ProtocolException {
    RequestEntry request = request(message);
    request.append(message.firstIndex(), message.tokens());
    cancelHold(blocks, request);
    int blockTokens = blocks.blockTokens;
    int computed = message.computedTokens();
    if (computed > request.tokenCount() || computed % blockTokens != 0) {
      throw ProtocolException.bad(
          "request %s has %s tokens, and says that %s are computed; these are whole blocks of %s"
              .formatted(request.id, request.tokenCount(), computed, blockTokens));
    }
    request.errorEpoch = errorEpoch.get();
    request.begin();
    SchedulerConnector scheduler = connector(blocks);
    String own = engine.ownGeneration();
    if (own != null) {
      scheduler.useGeneration(own);
    }
    int most = blocks.groups.isOne() ? Integer.MAX_VALUE : blocks.mostBlocks();
    PromptLookup lookup =
        scheduler.beginLookup(request.prompt(message, message.variant()), computed, most);
    return new LookupTask(
        this,
        blocks,
        request,
        computed,
        request.tokenCount() / blockTokens,
        engine.generation(),
        lookup,
        answer);
  }

  /** Uses other settings from now on. */
  synchronized void usePolicy(ConnectorSettings settings) {
    if (connector != null) {
      connector.usePolicy(settings);
    }
  }

  /** Whether a request still waits for a look-up. */
  synchronized boolean isAwaited(PromptLookup lookup) {
    SchedulerConnector scheduler = connector;
    return !closed && scheduler != null && scheduler.isAwaited(lookup);
  }

  /** Promises a request what a look-up found for it, as far as it can be loaded. */
  synchronized Offer offer(LookupTask task) {
    SchedulerConnector scheduler = connector;
    if (closed || scheduler == null) {
      return Offer.NOTHING;
    }
    EngineBlocks blocks = task.blocks();
    RequestEntry request = task.request();
    HitStatistics before = scheduler.statistics();
    boolean awaited = scheduler.isAwaited(task.lookup());
    int offered = scheduler.endLookup(task.lookup());
    int found = (int) (scheduler.statistics().externalBlocks() - before.externalBlocks());
    BlockIds ids = BlockIds.empty();
    boolean loads = false;
    if (offered > 0) {
      scheduler.allocated(request.id, numbers(request, blocks.blockTokens), offered);
      loads = engine.fields().role() != EngineFields.PRODUCER && engine.readyBlocks() != null;
      if (loads) {
        ids = loadIds(scheduler, request, task.computed() + offered);
      }
    }
    int first = task.computed() / blocks.blockTokens;
    List<FoundMessage.Part> parts = List.of();
    if (!blocks.groups.isOne() && awaited) {
      blocks.groups.found(request, task.lookup().storedBlocks());
      if (loads) {
        parts = blocks.groups.wanted(first, first + offered / blocks.blockTokens);
        ids = blocks.groups.ids(parts, scheduler.ids(request.id));
      }
    }
    if (ids.size() == 0) {
      return Offer.nothing(found);
    }
    request.hold = blocks.holds.begin(request.handle, first);
    request.offered = parts;
    return new Offer(offered, found, ids, request.hold, parts);
  }

  private RequestEntry request(LookupMessage message) throws ProtocolException {
    Integer other = handles.putIfAbsent(message.requestId(), message.handle());
    if (other != null && other != message.handle()) {
      throw ProtocolException.bad(
          "request " + message.requestId() + " is known under another handle: forget it first");
    }
    RequestEntry request =
        requests.computeIfAbsent(
            message.handle(), handle -> new RequestEntry(handle, message.requestId()));
    if (!request.id.equals(message.requestId())) {
      throw ProtocolException.bad(
          "a handle of request " + request.id + " is used for request " + message.requestId());
    }
    return request;
  }

  /** The blocks that were offered, as the connector plans to load them. */
  private static BlockIds loadIds(
      SchedulerConnector scheduler, RequestEntry request, int computed) {
    List<RequestPlan> plans =
        scheduler.plan(List.of(ScheduledRequest.of(request.id, computed, 0))).requests();
    return plans.isEmpty() ? BlockIds.empty() : plans.getFirst().loadIds();
  }

  private static void cancelHold(EngineBlocks blocks, RequestEntry request) {
    if (request.hold != null) {
      blocks.holds.cancel(request.hold);
      request.hold = null;
    }
  }

  public synchronized PlannedMessage plan(PlanMessage message) throws ProtocolException {
    List<PlannedMessage.Save> saves = new ArrayList<>();
    List<Integer> groups = new ArrayList<>();
    EngineBlocks blocks = engine.blocks();
    if (blocks != null) {
      SchedulerConnector scheduler = connector(blocks);
      addGenerated(scheduler, message.generated());
      take(blocks, message.taken());
      message.forgotten().forEach(handle -> forget(blocks, scheduler, handle));
      // A request that runs does not load what it has not taken.
      message.scheduled().stream()
          .map(scheduled -> requests.get(scheduled.handle()))
          .filter(Objects::nonNull)
          .forEach(request -> cancelHold(blocks, request));
      if (engine.readyBlocks() != null) {
        CompletableFuture<Boolean> basis = blocks.holds.allCopied();
        for (PlanMessage.Scheduled scheduled : message.scheduled()) {
          RequestEntry request = requests.get(scheduled.handle());
          if (request != null && maySave(request)) {
            save(blocks, scheduler, request, scheduled, basis, saves, groups);
          }
        }
      }
    }
    return new PlannedMessage(engine.generation(), saves, groups);
  }

  private void addGenerated(SchedulerConnector scheduler, List<PlanMessage.Generated> all)
      throws ProtocolException {
    for (PlanMessage.Generated generated : all) {
      RequestEntry request = requests.get(generated.handle());
      if (request != null) {
        int known = request.tokenCount();
        request.append(generated.firstIndex(), generated.tokens());
        scheduler.generated(request.id, request.tokensFrom(known));
      }
    }
  }

  private void take(EngineBlocks blocks, List<PlanMessage.Taken> all) {
    for (PlanMessage.Taken taken : all) {
      Hold hold = blocks.holds.take(taken.hold(), taken.blocks());
      RequestEntry request = hold == null ? null : requests.get(hold.handle);
      if (hold != null && request != null) {
        request.hold = null;
        request.loadedTo = hold.firstBlock + taken.blocks();
        if (taken.blocks() > 0) {
          blocks.groups.stored(request, request.offered);
        }
      }
    }
  }

  private void forget(EngineBlocks blocks, SchedulerConnector scheduler, int handle) {
    RequestEntry request = requests.remove(handle);
    if (request != null) {
      handles.remove(request.id);
      cancelHold(blocks, request);
      scheduler.finished(request.id);
    }
  }

  /** Adds the blocks that a request completes in a step, if there are any and slots for them. */
  private static void save(
      EngineBlocks blocks,
      SchedulerConnector scheduler,
      RequestEntry request,
      PlanMessage.Scheduled scheduled,
      CompletableFuture<Boolean> basis,
      List<PlannedMessage.Save> saves,
      List<Integer> groups) {
    int computed = Math.min(scheduled.computedTokens(), request.tokenCount());
    int added = Math.min(scheduled.newTokens(), request.tokenCount() - computed);
    int[] numbers = numbers(request, blocks.blockTokens);
    List<RequestPlan> plans =
        scheduler
            .plan(List.of(new ScheduledRequest(request.id, computed, added, numbers, true)))
            .requests();
    if (plans.isEmpty()) {
      return;
    }
    BlockIds ids = plans.getFirst().saveIds();
    int planned = plans.getFirst().saveBlocks().length == 0 ? 0 : plans.getFirst().saveBlocks()[0];
    if (!blocks.groups.isOne()) {
      int complete = (computed + added) / blocks.blockTokens;
      BlockIds prompt = scheduler.ids(request.id);
      for (Wanted wanted : blocks.groups.saves(request, computed / blocks.blockTokens, complete)) {
        BlockIds named = blocks.groups.ids(wanted, prompt);
        int saved = save(blocks, request, named, wanted.first(), basis, saves);
        request.saved(wanted.group()).set(wanted.first(), wanted.first() + saved);
        if (saved > 0) {
          groups.add(wanted.group());
        }
      }
      return;
    }
    int skipped = Math.clamp(request.loadedTo - planned, 0, ids.size());
    BlockIds named = ids.slice(skipped, ids.size());
    int _ = save(blocks, request, named, planned + skipped, basis, saves);
  }

  /** Adds blocks as far as there are slots for them; says how many. */
  private static int save(
      EngineBlocks blocks,
      RequestEntry request,
      BlockIds ids,
      int first,
      CompletableFuture<Boolean> basis,
      List<PlannedMessage.Save> saves) {
    int[] slots = blocks.slots.takeForSaves(ids.size());
    if (slots.length > 0) {
      long save = blocks.saves.begin(request.id, ids.slice(0, slots.length), slots, basis);
      if (save == 0) {
        return 0;
      }
      int[] padded = Arrays.copyOf(slots, ids.size());
      Arrays.fill(padded, slots.length, padded.length, PlannedMessage.NO_SLOT);
      saves.add(new PlannedMessage.Save(request.handle, save, first, padded));
    }
    return slots.length;
  }

  /** The request's blocks, which here are numbered from 0. */
  private static int[] numbers(RequestEntry request, int blockTokens) {
    return IntStream.rangeClosed(0, request.tokenCount() / blockTokens).toArray();
  }

  private boolean maySave(RequestEntry request) {
    int epoch = errorEpoch.get();
    return epoch % 2 == 0 && request.errorEpoch == epoch;
  }

  /** A rank could not load what it was promised; called by any thread. */
  void loadFailed() {
    errorNanos = engine.now();
    errorEpoch.updateAndGet(epoch -> epoch % 2 == 0 ? epoch + 1 : epoch);
  }

  /** Ends an error of which the engine says nothing: it may have been told of it by another rank. */
  void sweep() {
    if (errorEpoch.get() % 2 == 1 && engine.now() - errorNanos > ERROR_NANOS) {
      errorsSeen();
    }
  }

  /** The engine has handled the failed loads that were reported so far. */
  public void errorsSeen() {
    errorEpoch.updateAndGet(epoch -> epoch % 2 == 0 ? epoch : epoch + 1);
  }

  synchronized int openRequests() {
    return requests.size();
  }

  synchronized HitStatistics statistics() {
    SchedulerConnector made = connector;
    return made == null ? HitStatistics.NONE : made.statistics();
  }

  @Override
  public synchronized void close() {
    closed = true;
    // Its threads end when the store has answered them.
    executor.shutdown();
    SchedulerConnector made = connector;
    if (made != null) {
      made.close();
    }
  }
}
