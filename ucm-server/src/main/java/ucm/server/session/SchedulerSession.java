package ucm.server.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.pipeline.hash.PromptVariant;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.FoundMessage;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.PlannedMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.session.Holds.Hold;

/**
 * The scheduler side of an engine. A look-up brings what it finds into slots of all ranks before it is
 * answered, so that what is promised needs nothing but a copy. The engine's own block numbers stay in
 * the engine: here the n-th block of a request is block n. As long as not all ranks are connected,
 * nothing is found and nothing is saved.
 *
 * <p>A load that failed on one rank spoils what all ranks compute from it. What was planned until the
 * engine has handled that is not stored, and requests that it knew by then are not saved any more.
 *
 * <p>Used by the thread of the scheduler's connection, but for {@link #loadFailed}. Look-ups are
 * answered by other threads.
 */
public final class SchedulerSession implements AutoCloseable {

  private static final long ERROR_NANOS = TimeUnit.SECONDS.toNanos(60);

  private final EngineSession engine;
  private final Map<Integer, RequestEntry> requests = new HashMap<>();
  private final Map<String, Integer> handles = new HashMap<>();
  // Made when all ranks are there for the first time.
  private volatile @Nullable SchedulerConnector connector;
  // Odd while a failed load is not handled by the engine.
  private final AtomicInteger errorEpoch = new AtomicInteger();
  private volatile long errorNanos;

  SchedulerSession(EngineSession engine) {
    this.engine = engine;
  }

  private SchedulerConnector connector(EngineBlocks blocks) {
    SchedulerConnector made = connector;
    if (made == null) {
      made = blocks.scheduler();
      connector = made;
    }
    return made;
  }

  /**
   * Looks a prompt up.
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
    SchedulerConnector scheduler = connector(blocks);
    RequestEntry request = request(message);
    request.append(message.firstIndex(), message.tokens());
    cancelHold(blocks, request);
    int blockTokens = blocks.blockTokens;
    int computed = message.computedTokens();
    if (computed > request.tokenCount() || computed % blockTokens != 0) {
      throw ProtocolException.bad(
          "request "
              + request.id
              + " has "
              + request.tokenCount()
              + " tokens, and says that "
              + computed
              + " are computed; these are whole blocks of "
              + blockTokens);
    }
    request.errorEpoch = errorEpoch.get();
    request.loadedTo = 0;
    PromptVariant variant = variant(message, blocks.layoutText);
    HitStatistics before = scheduler.statistics();
    int offered = scheduler.matchedTokens(request.prompt(message, variant), computed);
    int found = (int) (scheduler.statistics().externalBlocks() - before.externalBlocks());
    int promptBlocks = request.tokenCount() / blockTokens;
    scheduler.allocated(request.id, numbers(request, blockTokens), offered);
    BlockIds ids = BlockIds.empty();
    if (offered > 0 && engine.fields().role() != EngineFields.PRODUCER) {
      ids = loadIds(scheduler, request, computed + offered);
    }
    int[] slots = blocks.slots.takeForLoads(ids.size());
    if (slots.length == 0) {
      answer.accept(FoundMessage.nothing(request.handle, engine.generation(), promptBlocks, found));
      return;
    }
    Hold hold = blocks.holds.begin(request.handle, computed / blockTokens, slots);
    request.hold = hold;
    int wanted = ids.size();
    blocks.load(
        request.id,
        ids.slice(0, slots.length),
        slots,
        there -> {
          int[] held = blocks.holds.filled(hold, there);
          answer.accept(
              new FoundMessage(
                  hold.handle,
                  held.length == wanted ? offered : held.length * blockTokens,
                  held.length == 0 ? 0 : hold.id,
                  engine.generation(),
                  held,
                  promptBlocks,
                  Math.max(found, held.length)));
        });
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

  private PromptVariant variant(LookupMessage message, String layoutText) throws ProtocolException {
    PromptVariant variant = message.variant(layoutText);
    String resetText = engine.resetText();
    if (resetText == null) {
      return variant;
    }
    List<String> hashes = new ArrayList<>(variant.multimodalHashes());
    hashes.add(resetText);
    return new PromptVariant(variant.loraName(), hashes, variant.cacheSalt());
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

  /** Plans a step. */
  public PlannedMessage plan(PlanMessage message) throws ProtocolException {
    List<PlannedMessage.Save> saves = new ArrayList<>();
    EngineBlocks blocks = engine.blocks();
    if (blocks != null) {
      SchedulerConnector scheduler = connector(blocks);
      addGenerated(scheduler, message.generated());
      take(blocks, message.taken());
      message.forgotten().forEach(handle -> forget(blocks, scheduler, handle));
      if (engine.readyBlocks() != null) {
        CompletableFuture<Boolean> basis = blocks.holds.allCopied();
        for (PlanMessage.Scheduled scheduled : message.scheduled()) {
          RequestEntry request = requests.get(scheduled.handle());
          if (request != null && maySave(request)) {
            save(blocks, scheduler, request, scheduled, basis, saves);
          }
        }
      }
    }
    return new PlannedMessage(engine.generation(), saves);
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
      List<PlannedMessage.Save> saves) {
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
    int skipped = Math.clamp(request.loadedTo - planned, 0, ids.size());
    ids = ids.slice(skipped, ids.size());
    int[] slots = blocks.slots.takeForSaves(ids.size());
    if (slots.length == 0) {
      return;
    }
    long save = blocks.saves.begin(request.id, ids.slice(0, slots.length), slots, basis);
    int[] padded = Arrays.copyOf(slots, ids.size());
    Arrays.fill(padded, slots.length, padded.length, PlannedMessage.NO_SLOT);
    saves.add(new PlannedMessage.Save(request.handle, save, planned + skipped, padded));
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

  /** How many requests it knows. */
  int openRequests() {
    return requests.size();
  }

  /** What its look-ups found. */
  HitStatistics statistics() {
    SchedulerConnector made = connector;
    return made == null ? HitStatistics.NONE : made.statistics();
  }

  @Override
  public void close() {
    SchedulerConnector made = connector;
    if (made != null) {
      made.close();
    }
  }
}
