package ucm.server;

import com.carrotsearch.hppc.IntArrayList;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.LookupMessage.FoundMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;
import ucm.server.protocol.ProtocolException;

/**
 * The scheduler side: says how much of a prompt need not be computed, and plans what each step loads and
 * saves. Calls and their order are those of {@link ucm.pipeline.connector.SchedulerConnector}. What is
 * found lies in the slots of all ranks when {@link #matchedTokens} returns, and stays there for this
 * request for some time; {@link #lookUp} begins that without waiting.
 *
 * <p>Used by one thread. Nothing is thrown because of the daemon, and each wait for it has a bound; then
 * the engine computes. A step that completes no block sends nothing.
 */
public final class RemoteScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(RemoteScheduler.class);
  private static final long LOOKUP_MILLIS = 5000;
  private static final long PLAN_MILLIS = 1000;
  // Slots of a promise that ended without our knowledge rest for 60 s.
  private static final long PROMISE_NANOS = TimeUnit.SECONDS.toNanos(40);

  private final EngineSpec spec;
  private final boolean savesGenerated;
  private final DaemonLink link;
  private final Map<String, RemoteRequest> requests = new HashMap<>();
  private volatile String generation = "";
  private volatile boolean isUntold;
  private int lastHandle;
  private int step;

  // What is to be told to the connection.
  private @Nullable DaemonConnection current;
  private final List<PlanMessage.Taken> taken = new ArrayList<>();
  private final List<Integer> forgotten = new ArrayList<>();

  RemoteScheduler(Path socket, EngineSpec spec, EngineFields engine, boolean savesGenerated) {
    this.spec = spec;
    this.savesGenerated = savesGenerated;
    link =
        new DaemonLink(
            socket,
            HelloMessage.SCHEDULER,
            "scheduler",
            daemon -> {
              String own = generation;
              IdentityMessage identity = new IdentityMessage("", "", "", own);
              daemon.tell(MessageType.IDENTIFY, to -> to.record(identity));
              FrameReader _ =
                  daemon.call(
                      MessageType.OPEN_SCHEDULER,
                      to -> to.record(engine),
                      MessageType.OPENED_SCHEDULER);
              if (isUntold) {
                FrameReader _ =
                    daemon.call(MessageType.RESET, to -> to.string(own), MessageType.DONE);
                isUntold = false;
              }
            });
  }

  /**
   * Disowns all that was stored so far, as {@code SchedulerConnector.reset} does; also while no daemon
   * answers. Requests that are open are to be looked up again.
   */
  public void reset() {
    String own = UUID.randomUUID().toString();
    isUntold = true;
    generation = own;
    requests.values().forEach(request -> request.answer = null);
    DaemonConnection daemon = daemon();
    if (daemon == null) {
      return;
    }
    try {
      FrameReader told =
          DaemonConnection.await(
              daemon.ask(MessageType.RESET, to -> to.string(own), MessageType.DONE), LOOKUP_MILLIS);
      isUntold = told == null;
    } catch (ProtocolException e) {
      isUntold = false;
      LOG.warn("UCM: {}", e.getMessage());
    } catch (IOException e) {
      link.lost(daemon, e);
    }
  }

  /** The connection; holds and numbers of one before it have ended. */
  private @Nullable DaemonConnection daemon() {
    DaemonConnection now = link.get();
    if (now != current) {
      current = now;
      taken.clear();
      forgotten.clear();
    }
    return now;
  }

  /**
   * Begins a look-up, unless it is under way or has been answered. May be called some time before {@link
   * #matchedTokens} with the same arguments, which then need not wait.
   *
   * @return whether it has been answered
   */
  public boolean lookUp(PromptRequest request, int computedTokens) {
    CompletableFuture<FrameReader> answer = ask(request, computedTokens).answer;
    return answer == null || answer.isDone();
  }

  /**
   * Says how many tokens can be loaded beyond those that are on the device, after {@code
   * SchedulerConnector.matchedTokens}. Waits until they are in the slots, 5 s at most.
   */
  public int matchedTokens(PromptRequest request, int computedTokens) {
    RemoteRequest state = ask(request, computedTokens);
    if (state.found == null && state.answer != null) {
      state.found = answer(state, state.answer);
    }
    state.offered = state.found == null ? 0 : state.found.tokens();
    return state.offered;
  }

  private RemoteRequest ask(PromptRequest request, int computed) {
    if (computed < 0 || computed > request.tokens().length || computed % spec.blockTokens() != 0) {
      throw new IllegalArgumentException(
          ("request %s: the tokens on the device are whole blocks of %s and at most the %s of the"
                  + " request; found %s")
              .formatted(request.id(), spec.blockTokens(), request.tokens().length, computed));
    }
    RemoteRequest state =
        requests.computeIfAbsent(request.id(), id -> new RemoteRequest(id, ++lastHandle));
    DaemonConnection daemon = daemon();
    int same = daemon == state.toldTo ? state.samePrefix(request.tokens()) : 0;
    boolean known =
        state.answer != null
            && daemon == state.toldTo
            && computed == state.computed
            && same == request.tokens().length
            && same == state.tokens.size()
            && isFresh(state);
    if (!known) {
      state.asks(request.tokens(), computed);
      if (daemon != null) {
        send(daemon, state, request, Math.min(same, state.told));
      }
    }
    return state;
  }

  private static boolean isFresh(RemoteRequest state) {
    return System.nanoTime() - state.askedNanos < PROMISE_NANOS;
  }

  private void send(DaemonConnection daemon, RemoteRequest state, PromptRequest of, int known) {
    int[] tokens = of.tokens();
    LookupMessage message =
        new LookupMessage(
            state.handle,
            state.id,
            state.computed,
            of.promptTokens(),
            of.maxOutputTokens(),
            LookupMessage.variants(of.variant()),
            known,
            Arrays.copyOfRange(tokens, known, tokens.length),
            LookupMessage.inputs(of.variant()));
    try {
      if (!forgotten.isEmpty()) {
        // The id may be that of a request that ended since the last step.
        PlanMessage forgets = plan(List.of(), List.of());
        daemon.tell(MessageType.PLAN, to -> to.record(forgets));
      }
      state.answer = daemon.ask(MessageType.LOOKUP, to -> to.record(message), MessageType.FOUND);
      state.toldTo = daemon;
      state.told = tokens.length;
    } catch (IOException e) {
      link.lost(daemon, e);
    }
  }

  private @Nullable FoundMessage answer(
      RemoteRequest state, CompletableFuture<FrameReader> answer) {
    try {
      FrameReader body = DaemonConnection.await(answer, LOOKUP_MILLIS);
      if (body == null) {
        LOG.warn("UCM: a look-up was not answered in {} ms: it counts as 0 hits", LOOKUP_MILLIS);
        return null;
      }
      FoundMessage found = body.record(FoundMessage.class);
      if (found.promptBlocks() == 0) {
        // The daemon keeps no tokens before all ranks have registered.
        state.told = 0;
      } else {
        LOG.info(
            "request_id: {}, total_blocks_num: {}, hit hbm: {}, hit external: {}, total tokens: {}",
            state.id,
            found.promptBlocks(),
            state.computed / spec.blockTokens(),
            found.foundBlocks(),
            state.tokens.size());
      }
      return found;
    } catch (IOException | ProtocolException e) {
      state.answer = null;
      link.lost(state.toldTo, e);
      return null;
    }
  }

  /**
   * Tells of the blocks that the engine allocated for a request, after {@code
   * SchedulerConnector.allocated}.
   */
  public void allocated(String requestId, int[] blocks, int externalTokens) {
    RemoteRequest state = requests.get(requestId);
    if (state == null) {
      throw new IllegalStateException(
          "request " + requestId + " is unknown: ask matchedTokens() before allocated()");
    }
    if (externalTokens < 0 || externalTokens > state.offered) {
      throw new IllegalArgumentException(
          "request %s: %s external tokens were offered; the engine takes %s"
              .formatted(requestId, state.offered, externalTokens));
    }
    state.table = IntArrayList.from(blocks);
    FoundMessage found = state.found;
    if (externalTokens > 0) {
      state.load = found;
      state.loadBlocks = Math.ceilDiv(externalTokens, spec.blockTokens());
    } else if (found != null && found.hold() != 0 && daemon() == state.toldTo) {
      taken.add(new PlanMessage.Taken(found.hold(), 0));
    }
    // The promise is used up: a preempted request asks again.
    state.answer = null;
    state.found = null;
    state.offered = 0;
  }

  /**
   * Tells of generated tokens, so that the blocks that they complete are saved; after {@code
   * SchedulerConnector.generated}.
   */
  public void generated(String requestId, int[] tokens) {
    RemoteRequest state = requests.get(requestId);
    if (savesGenerated && state != null) {
      state.tokens.add(tokens);
    }
  }

  /** Plans a step, after {@code SchedulerConnector.plan}; {@link PlanBytes} carries it to the ranks. */
  public StepPlan plan(List<ScheduledRequest> scheduled) {
    DaemonConnection daemon = daemon();
    Map<String, RequestPlan> plans = new LinkedHashMap<>();
    Map<Integer, RemoteRequest> saving = new HashMap<>();
    List<PlanMessage.Scheduled> entries = new ArrayList<>();
    List<PlanMessage.Generated> generated = new ArrayList<>();
    for (ScheduledRequest one : scheduled) {
      RemoteRequest state = requests.get(one.requestId());
      if (state == null) {
        continue;
      }
      state.addBlocks(one);
      if (state.load != null) {
        plans.put(state.id, load(daemon, state, state.load));
        state.load = null;
      }
      int end = state.completedTokens(one, spec.blockTokens());
      if (end > 0 && daemon != null && daemon == state.toldTo && state.told > 0) {
        saving.put(state.handle, state);
        entries.add(new PlanMessage.Scheduled(state.handle, one.computedTokens(), one.newTokens()));
        if (end > state.told) {
          int[] more = Arrays.copyOfRange(state.tokens.buffer, state.told, end);
          generated.add(new PlanMessage.Generated(state.handle, state.told, more));
          state.told = end;
        }
      }
    }
    if (daemon != null && !(taken.isEmpty() && forgotten.isEmpty() && entries.isEmpty())) {
      PlannedMessage planned = send(daemon, plan(entries, generated));
      for (PlannedMessage.Save save : planned.saves()) {
        RemoteRequest state = saving.get(save.handle());
        if (state != null) {
          plans.merge(
              state.id, save(planned.generation(), save, state), RemoteScheduler::loadsAndSaves);
        }
      }
    }
    return new StepPlan(List.copyOf(plans.values()));
  }

  private RequestPlan load(
      @Nullable DaemonConnection daemon, RemoteRequest state, FoundMessage found) {
    int[] slots = Arrays.copyOf(found.slots(), state.loadBlocks);
    boolean promised = isFresh(state);
    if (!promised) {
      Arrays.fill(slots, PlannedMessage.NO_SLOT);
    }
    if (daemon == state.toldTo) {
      taken.add(new PlanMessage.Taken(found.hold(), promised ? slots.length : 0));
    }
    int first = state.computed / spec.blockTokens();
    return new RequestPlan(
        state.id,
        SlotStore.name(found.generation(), found.hold(), slots),
        state.blocks(first, first + slots.length),
        BlockIds.empty(),
        RemoteRequest.NO_BLOCKS,
        RemoteRequest.NO_BLOCKS);
  }

  private static RequestPlan save(int generation, PlannedMessage.Save save, RemoteRequest state) {
    int count = save.slots().length;
    // Those without a slot are the last ones.
    while (count > 0 && save.slots()[count - 1] == PlannedMessage.NO_SLOT) {
      count--;
    }
    int first = save.firstBlock();
    return new RequestPlan(
        state.id,
        BlockIds.empty(),
        RemoteRequest.NO_BLOCKS,
        SlotStore.name(generation, save.save(), Arrays.copyOf(save.slots(), count)),
        state.blocks(first, first + count),
        state.blocks(0, first));
  }

  private static RequestPlan loadsAndSaves(RequestPlan load, RequestPlan save) {
    return new RequestPlan(
        load.requestId(),
        load.loadIds(),
        load.loadBlocks(),
        save.saveIds(),
        save.saveBlocks(),
        save.contextBlocks());
  }

  private PlanMessage plan(
      List<PlanMessage.Scheduled> entries, List<PlanMessage.Generated> generated) {
    PlanMessage message =
        new PlanMessage(++step, List.copyOf(taken), List.copyOf(forgotten), entries, generated);
    taken.clear();
    forgotten.clear();
    return message;
  }

  /** Sends a plan. A daemon that does not answer in time is given up, as nothing may be saved late. */
  private PlannedMessage send(DaemonConnection daemon, PlanMessage message) {
    try {
      if (message.scheduled().isEmpty()) {
        daemon.tell(MessageType.PLAN, to -> to.record(message));
      } else {
        FrameReader body =
            DaemonConnection.await(
                daemon.ask(MessageType.PLAN, to -> to.record(message), MessageType.PLANNED),
                PLAN_MILLIS);
        if (body == null) {
          throw new IOException("it did not answer within " + PLAN_MILLIS + " ms");
        }
        return body.record(PlannedMessage.class);
      }
    } catch (IOException | ProtocolException e) {
      link.lost(daemon, e);
    }
    return new PlannedMessage(0, List.of(), List.of());
  }

  /**
   * Tells that the engine has handled all load errors that the ranks named so far: it computes those blocks
   * again. Until then, nothing is saved.
   */
  public void loadErrorsSeen() {
    DaemonConnection daemon = daemon();
    if (daemon != null) {
      try {
        daemon.tell(MessageType.ERRORS_SEEN, to -> to);
      } catch (IOException e) {
        link.lost(daemon, e);
      }
    }
  }

  /** Forgets a request that has ended, however it ended. */
  public void finished(String requestId) {
    RemoteRequest state = requests.remove(requestId);
    if (state != null && state.toldTo != null && daemon() == state.toldTo) {
      forgotten.add(state.handle);
    }
  }

  /** Ends the connection: the daemon forgets all requests. Idempotent. */
  @Override
  public void close() {
    requests.clear();
    link.close();
  }
}
