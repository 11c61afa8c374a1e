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
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.ProtocolException;

/**
 * The scheduler side of an engine. A look-up brings what it finds into slots of all ranks before it is
 * answered, so that what is promised needs nothing but a copy. The engine's own block numbers stay in
 * the engine: here the n-th block of a request is block n.
 *
 * <p>A load that failed on one rank spoils what all ranks compute from it. What was planned until the
 * engine has handled that is not stored, and requests that it knew by then are not saved any more.
 *
 * <p>Used by the thread of the scheduler's connection, but for {@link #loadFailed}. Look-ups are
 * answered by other threads.
 */
public final class SchedulerSession implements AutoCloseable {

  private static final long ERROR_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final int NO_SLOT = -1;
  private static final int[] NO_SLOTS = {};

  /**
   * FOUND.
   *
   * @param tokens that can be loaded beyond those computed
   * @param hold number of the hold, 0 without one
   * @param generation of the slots
   * @param slots one for each block that is held
   * @param promptBlocks full blocks of the prompt
   * @param foundBlocks those found outside of the device
   */
  // Packed on purpose: hundreds of numbers are no objects. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  public record Found(
      int tokens, long hold, int generation, int[] slots, int promptBlocks, int foundBlocks) {}

  /**
   * Blocks of a request that a step completes.
   *
   * @param handle the client's number of the request
   * @param save number of the save
   * @param firstBlock the first of them
   * @param slots one for each block; -1 for one that is not saved
   */
  // As above.
  @SuppressWarnings("ArrayRecordComponent")
  public record PlannedSave(int handle, long save, int firstBlock, int[] slots) {}

  private final EngineSession engine;
  private final SchedulerConnector connector;
  private final Map<Integer, RequestEntry> requests = new HashMap<>();
  private final Map<String, Integer> handles = new HashMap<>();
  // Odd while a failed load is not handled by the engine.
  private final AtomicInteger errorEpoch = new AtomicInteger();
  private volatile long errorNanos;

  SchedulerSession(EngineSession engine, SchedulerConnector connector) {
    this.engine = engine;
    this.connector = connector;
  }

  /**
   * Looks a prompt up.
   *
   * @param answer called once, by any thread
   */
  public void lookup(LookupMessage message, Consumer<Found> answer) throws ProtocolException {
    RequestEntry request = request(message);
    request.append(message.firstIndex(), message.tokens());
    cancelHold(request);
    int blockTokens = engine.spec().blockTokens();
    int computed = message.computedTokens();
    if (computed > request.tokenCount() || computed % blockTokens != 0) {
      throw new ProtocolException(
          ProtocolException.BAD_MESSAGE,
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
    PromptVariant variant = variant(message);
    HitStatistics before = connector.statistics();
    int offered = connector.matchedTokens(request.prompt(message, variant), computed);
    int found = (int) (connector.statistics().externalBlocks() - before.externalBlocks());
    int promptBlocks = request.tokenCount() / blockTokens;
    connector.allocated(request.id, numbers(request), offered);
    boolean loads = offered > 0 && engine.fields().role() != EngineFields.PRODUCER;
    BlockIds ids = !loads ? BlockIds.empty() : loadIds(request, computed + offered);
    int[] slots = engine.slots().takeForLoads(ids.size());
    if (slots.length == 0) {
      answer.accept(new Found(0, 0, engine.generation(), NO_SLOTS, promptBlocks, found));
      return;
    }
    Hold hold = engine.holds().begin(request.handle, computed / blockTokens, slots);
    request.hold = hold;
    engine.load(
        request.id,
        ids.slice(0, slots.length),
        slots,
        there -> {
          int[] held = engine.holds().filled(hold, there);
          boolean all = held.length == ids.size();
          answer.accept(
              new Found(
                  all ? offered : held.length * blockTokens,
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
      throw new ProtocolException(
          ProtocolException.BAD_MESSAGE,
          "request " + message.requestId() + " is known under another handle: forget it first");
    }
    RequestEntry request =
        requests.computeIfAbsent(
            message.handle(), handle -> new RequestEntry(handle, message.requestId()));
    if (!request.id.equals(message.requestId())) {
      throw new ProtocolException(
          ProtocolException.BAD_MESSAGE,
          "a handle of request " + request.id + " is used for request " + message.requestId());
    }
    return request;
  }

  private PromptVariant variant(LookupMessage message) throws ProtocolException {
    PromptVariant variant = message.variant(engine.layoutText());
    String resetText = engine.resetText();
    if (resetText == null) {
      return variant;
    }
    List<String> hashes = new ArrayList<>(variant.multimodalHashes());
    hashes.add(resetText);
    return new PromptVariant(variant.loraName(), hashes, variant.cacheSalt());
  }

  /** The blocks that were offered, as the connector plans to load them. */
  private BlockIds loadIds(RequestEntry request, int computed) {
    List<RequestPlan> plans =
        connector.plan(List.of(ScheduledRequest.of(request.id, computed, 0))).requests();
    return plans.isEmpty() ? BlockIds.empty() : plans.getFirst().loadIds();
  }

  private void cancelHold(RequestEntry request) {
    if (request.hold != null) {
      engine.holds().cancel(request.hold);
      request.hold = null;
    }
  }

  /** Plans a step. */
  public List<PlannedSave> plan(PlanMessage message) throws ProtocolException {
    for (PlanMessage.Generated generated : message.generated()) {
      RequestEntry request = requests.get(generated.handle());
      if (request != null) {
        int known = request.tokenCount();
        request.append(generated.firstIndex(), generated.tokens());
        connector.generated(request.id, request.tokensFrom(known));
      }
    }
    for (PlanMessage.Taken taken : message.taken()) {
      Hold hold = engine.holds().take(taken.hold(), taken.blocks());
      if (hold == null) {
        continue;
      }
      RequestEntry request = requests.get(hold.handle);
      if (request != null) {
        request.hold = null;
        request.loadedTo = hold.firstBlock + taken.blocks();
      }
    }
    message.forgotten().forEach(this::forget);
    List<PlannedSave> saves = new ArrayList<>();
    if (engine.isReady()) {
      CompletableFuture<Boolean> basis = engine.holds().allCopied();
      for (PlanMessage.Scheduled scheduled : message.scheduled()) {
        PlannedSave save = plan(scheduled, basis);
        if (save != null) {
          saves.add(save);
        }
      }
    }
    return saves;
  }

  private @Nullable PlannedSave plan(
      PlanMessage.Scheduled scheduled, CompletableFuture<Boolean> basis) {
    RequestEntry request = requests.get(scheduled.handle());
    if (request == null || !maySave(request)) {
      return null;
    }
    int computed = Math.min(scheduled.computedTokens(), request.tokenCount());
    int added = Math.min(scheduled.newTokens(), request.tokenCount() - computed);
    List<RequestPlan> plans =
        connector
            .plan(
                List.of(new ScheduledRequest(request.id, computed, added, numbers(request), true)))
            .requests();
    if (plans.isEmpty()) {
      return null;
    }
    BlockIds ids = plans.getFirst().saveIds();
    int planned = plans.getFirst().saveBlocks().length == 0 ? 0 : plans.getFirst().saveBlocks()[0];
    int skipped = Math.clamp(request.loadedTo - planned, 0, ids.size());
    ids = ids.slice(skipped, ids.size());
    int[] slots = engine.slots().takeForSaves(ids.size());
    if (slots.length == 0) {
      return null;
    }
    long save = engine.saves().begin(request.id, ids.slice(0, slots.length), slots, basis);
    int[] padded = Arrays.copyOf(slots, ids.size());
    Arrays.fill(padded, slots.length, padded.length, NO_SLOT);
    return new PlannedSave(request.handle, save, planned + skipped, padded);
  }

  /** The request's blocks, which here are numbered from 0. */
  private int[] numbers(RequestEntry request) {
    int blocks = request.tokenCount() / engine.spec().blockTokens();
    return IntStream.rangeClosed(0, blocks).toArray();
  }

  private boolean maySave(RequestEntry request) {
    int epoch = errorEpoch.get();
    return epoch % 2 == 0 && request.errorEpoch == epoch;
  }

  private void forget(int handle) {
    RequestEntry request = requests.remove(handle);
    if (request != null) {
      handles.remove(request.id);
      cancelHold(request);
      connector.finished(request.id);
    }
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
    return connector.statistics();
  }

  @Override
  public void close() {
    connector.close();
  }
}
