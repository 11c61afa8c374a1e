package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.pipeline.connector.TestEngines.BLOCK_TOKENS;
import static ucm.pipeline.connector.TestEngines.LAYERS;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/**
 * An engine that does at random whatever an engine may do: continuous batching, chunked prefill, a
 * prefix cache in its own memory with evictions, preemption, aborts, recomputation after load errors.
 * It knows the right bytes of every block, computes garbage from garbage, and looks at every byte it
 * is given.
 */
final class SimulatedEngine {

  /** Asked in each step what the plan must be; the checks of it are the caller's. */
  interface Reference {
    Reference NONE =
        new Reference() {
          @Override
          public void looked(int[] tokens, int hbmBlocks, int promptTokens, int offered) {}

          @Override
          public void saved(BlockIds ids) {}
        };

    /** The engine was offered some external tokens. */
    void looked(int[] tokens, int hbmBlocks, int promptTokens, int offered);

    /** The step saved blocks (as rank 0 names them). */
    void saved(BlockIds ids);
  }

  private static final int MAX_RUNNING = 4;

  private final EngineSpec spec;
  private final Random random;
  private final SchedulerConnector scheduler;
  private final List<WorkerConnector> workers;
  private final List<RankMemory> memories;
  private final Reference reference;
  private final BlockHasher hasher;
  private final Deque<SimulatedRequest> waiting = new ArrayDeque<>();
  private final List<SimulatedRequest> running = new ArrayList<>();
  private final SimulatedPages pages;
  private int named;

  /** Short requests save nothing; the caller says which are. */
  IntPredicate tooShort = tokens -> false;

  int loadedBlocks;
  int savedBlocks;
  int loadErrors;
  int preemptions;

  SimulatedEngine(
      EngineSpec spec,
      Random random,
      SchedulerConnector scheduler,
      List<WorkerConnector> workers,
      List<RankMemory> memories,
      Reference reference) {
    this.spec = spec;
    this.random = random;
    this.scheduler = scheduler;
    this.workers = workers;
    this.memories = memories;
    this.reference = reference;
    this.pages = new SimulatedPages(random, memories);
    this.hasher = BlockHasher.of(spec.model(), spec.tpSize(), spec.dtype());
  }

  void step() throws InterruptedException {
    if (waiting.size() < 3) {
      waiting.add(new SimulatedRequest("r" + named++, prompt()));
    }
    pages.dropSome();
    abortOrPreemptSome();
    while (running.size() < MAX_RUNNING && !waiting.isEmpty() && admit(waiting.peek())) {
      running.add(waiting.remove());
    }
    List<Integer> newTokens = new ArrayList<>();
    List<ScheduledRequest> scheduled = new ArrayList<>();
    List<SimulatedRequest> stepping = new ArrayList<>();
    for (SimulatedRequest request : running) {
      int wanted = 1 + random.nextInt(request.tokens.length - request.computed);
      grow(request, request.computed + wanted);
      int tokens = Math.min(wanted, request.table.size() * BLOCK_TOKENS - request.computed);
      if (tokens <= 0) {
        continue;
      }
      newTokens.add(tokens);
      stepping.add(request);
      int from = request.resumed ? 0 : request.told;
      scheduled.add(
          new ScheduledRequest(
              request.id,
              request.computed,
              tokens,
              request.table(from, request.table.size()),
              request.resumed));
      request.told = request.table.size();
      request.resumed = false;
    }
    StepPlan plan = scheduler.plan(scheduled);
    checkPlan(plan, stepping, newTokens);
    run(plan, stepping, newTokens);
    stepping.forEach(request -> request.loads = false);
  }

  /** Prompts that share beginnings with one another. */
  private int[] prompt() {
    int family = random.nextInt(3);
    int common = random.nextInt(5 * BLOCK_TOKENS);
    int own = 1 + random.nextInt(3 * BLOCK_TOKENS);
    int salt = random.nextInt(50);
    return IntStream.concat(
            IntStream.range(0, common).map(i -> family * 1000 + i),
            IntStream.range(0, own).map(i -> 10_000 + salt * 100 + i))
        .toArray();
  }

  private void abortOrPreemptSome() {
    for (SimulatedRequest request : List.copyOf(running)) {
      int dice = random.nextInt(12);
      if (dice == 0) {
        release(request);
        scheduler.finished(request.id);
      } else if (dice == 1) {
        release(request);
        preemptions++;
        request.computed = 0;
        request.resumed = true;
        waiting.addFirst(request);
      }
    }
    if (waiting.size() > 1 && random.nextInt(10) == 0) {
      scheduler.finished(waiting.removeLast().id);
    }
  }

  private void release(SimulatedRequest request) {
    request.table.forEach(pages::release);
    request.table.clear();
    running.remove(request);
  }

  private boolean admit(SimulatedRequest request) {
    // As vLLM does, the device never reports a whole prompt as cached: a token must be left to
    // compute.
    List<Integer> hits = pages.hits(request.tokens, (request.tokens.length - 1) / BLOCK_TOKENS);
    int hbmTokens = hits.size() * BLOCK_TOKENS;
    int offered =
        scheduler.matchedTokens(
            new PromptRequest(
                request.id, request.tokens, request.promptTokens, 9, PromptVariant.NONE),
            hbmTokens);
    reference.looked(request.tokens, hits.size(), request.promptTokens, offered);
    if (random.nextInt(6) == 0) {
      return false;
    }
    hits.forEach(pages::use);
    request.table.addAll(hits);
    if (!grow(request, hbmTokens + offered + 1)) {
      release(request);
      return false;
    }
    scheduler.allocated(request.id, request.table(0, request.table.size()), offered);
    request.told = request.table.size();
    request.hbm = hits.size();
    request.asked = request.tokens.length;
    request.loads = offered > 0;
    request.computed = hbmTokens + offered;
    // As vLLM does: what this step loads is a hit on the device for those who come after.
    pages.remember(request.tokens, request.table, Math.ceilDiv(request.computed, BLOCK_TOKENS));
    return true;
  }

  /** Gives a request pages for some tokens, evicting what is unused. */
  private boolean grow(SimulatedRequest request, int tokens) {
    int needed = Math.ceilDiv(tokens, BLOCK_TOKENS);
    while (request.table.size() < needed) {
      OptionalInt page = pages.take();
      if (page.isEmpty()) {
        return false;
      }
      request.table.add(page.getAsInt());
    }
    return true;
  }

  /** The plan must load and save exactly the right blocks of exactly the right pages. */
  private void checkPlan(StepPlan plan, List<SimulatedRequest> stepping, List<Integer> newTokens) {
    Map<String, RequestPlan> plans = new HashMap<>();
    plan.requests().forEach(request -> plans.put(request.requestId(), request));
    for (int i = 0; i < stepping.size(); i++) {
      SimulatedRequest request = stepping.get(i);
      BlockIds ids = hasher.hash(request.tokens, BLOCK_TOKENS);
      int loadTo = request.loads ? Math.ceilDiv(request.computed, BLOCK_TOKENS) : request.hbm;
      int loadFrom = request.loads ? request.hbm : loadTo;
      int saveTo = Math.min(request.asked, request.computed + newTokens.get(i)) / BLOCK_TOKENS;
      int saveFrom = request.computed / BLOCK_TOKENS;
      if (request.loads) {
        saveFrom = Math.max(saveFrom, loadTo);
      }
      RequestPlan planned = plans.remove(request.id);
      if (planned == null) {
        assertThat(loadTo - loadFrom).as("loads of %s", request.id).isZero();
        assertThat(saveFrom)
            .as("saves of %s", request.id)
            .isGreaterThanOrEqualTo(saved(request, saveTo));
        continue;
      }
      assertThat(planned.loadIds()).isEqualTo(ids.slice(loadFrom, loadTo));
      assertThat(planned.loadBlocks()).isEqualTo(request.table(loadFrom, loadTo));
      saveTo = Math.max(saveFrom, saved(request, saveTo));
      assertThat(planned.saveIds()).isEqualTo(ids.slice(saveFrom, saveTo));
      assertThat(planned.saveBlocks()).isEqualTo(request.table(saveFrom, saveTo));
      loadedBlocks += planned.loadBlocks().length;
      savedBlocks += planned.saveBlocks().length;
      reference.saved(planned.saveIds());
    }
    assertThat(plans).as("plans of requests that are not scheduled").isEmpty();
  }

  private int saved(SimulatedRequest request, int saveTo) {
    return tooShort.test(request.asked) ? 0 : saveTo;
  }

  private void run(StepPlan plan, List<SimulatedRequest> stepping, List<Integer> newTokens)
      throws InterruptedException {
    for (WorkerConnector worker : workers) {
      worker.startLoad(plan);
    }
    Set<Integer> garbage = new HashSet<>();
    for (int layer = 0; layer < LAYERS; layer++) {
      for (WorkerConnector worker : workers) {
        worker.waitForLayerLoad(layer);
      }
      for (int i = 0; i < stepping.size(); i++) {
        compute(layer, stepping.get(i), newTokens.get(i), garbage);
      }
      for (WorkerConnector worker : workers) {
        worker.saveLayer(layer);
      }
    }
    Set<Integer> errors = new HashSet<>();
    List<int[]> ofRanks = new ArrayList<>();
    for (int rank = 0; rank < workers.size(); rank++) {
      int[] found = workers.get(rank).takeLoadErrors();
      checkErrors(plan, rank, found);
      ofRanks.add(found);
      Arrays.stream(found).forEach(errors::add);
    }
    for (WorkerConnector worker : workers) {
      ofRanks.forEach(worker::excludeFromSave);
      worker.waitForSave();
    }
    loadErrors += errors.size();
    errors.forEach(pages::forget);
    for (int i = 0; i < stepping.size(); i++) {
      advance(stepping.get(i), newTokens.get(i), errors, garbage);
    }
  }

  /** Computes what becomes full, right if all it attends to is right, else garbage. */
  private void compute(int layer, SimulatedRequest request, int newTokens, Set<Integer> garbage) {
    BlockIds ids = hasher.hash(request.tokens, BLOCK_TOKENS);
    int from = request.computed / BLOCK_TOKENS;
    int to = (request.computed + newTokens) / BLOCK_TOKENS;
    boolean right = true;
    for (int block = 0; block < to && layer > 0; block++) {
      int page = request.table.get(block);
      right &= garbage.contains(page) ? false : block >= from || holds(layer - 1, page, ids, block);
    }
    for (int block = from; block < to; block++) {
      int page = request.table.get(block);
      boolean fullHit = request.loads && block < Math.ceilDiv(request.computed, BLOCK_TOKENS);
      if (fullHit) {
        continue; // One token is computed once more; its block was loaded.
      }
      if (!right) {
        garbage.add(page);
      }
      for (int rank = 0; rank < memories.size(); rank++) {
        if (right) {
          memories.get(rank).compute(layer, page, idsOf(rank, ids), block);
        }
      }
    }
    if (!right && to > from) {
      garbage.addAll(request.table.subList(from, to));
    }
  }

  private boolean holds(int layer, int page, BlockIds ids, int block) {
    for (int rank = 0; rank < memories.size(); rank++) {
      for (int l = 0; l <= layer; l++) {
        if (!memories.get(rank).holds(l, page, idsOf(rank, ids), block)) {
          return false;
        }
      }
    }
    return true;
  }

  private BlockIds idsOf(int rank, BlockIds ids) {
    return hasher.ofRank(spec.mla() ? 0 : rank, ids);
  }

  /** The errors are exactly the blocks whose bytes are wrong. */
  private void checkErrors(StepPlan plan, int rank, int[] errors) {
    Set<Integer> wrong = new HashSet<>();
    for (RequestPlan request : plan.requests()) {
      for (int i = 0; i < request.loadBlocks().length; i++) {
        BlockIds ids = idsOf(rank, request.loadIds());
        if (!memories.get(rank).holds(request.loadBlocks()[i], ids, i)) {
          wrong.add(request.loadBlocks()[i]);
        }
      }
    }
    assertThat(Arrays.stream(errors).boxed()).containsExactlyInAnyOrderElementsOf(wrong);
  }

  private void advance(
      SimulatedRequest request, int newTokens, Set<Integer> errors, Set<Integer> garbage) {
    int firstBad = request.table.size();
    for (int block = request.table.size() - 1; block >= 0; block--) {
      int page = request.table.get(block);
      if (errors.contains(page) || garbage.contains(page)) {
        firstBad = block;
      }
    }
    int reached = request.computed + newTokens;
    if (firstBad * BLOCK_TOKENS < reached) {
      request.computed = firstBad * BLOCK_TOKENS;
      return;
    }
    request.computed = reached;
    pages.remember(request.tokens, request.table, reached / BLOCK_TOKENS);
    if (request.computed == request.tokens.length) {
      if (request.tokens.length > request.promptTokens + 2 || request.table.size() > 8) {
        release(request);
        scheduler.finished(request.id);
      } else {
        request.tokens = Arrays.copyOf(request.tokens, request.tokens.length + 1);
        request.tokens[request.tokens.length - 1] = 50_000 + random.nextInt(2);
      }
    }
  }

  /** Ends all requests. */
  void end() {
    for (SimulatedRequest request : List.copyOf(running)) {
      release(request);
      scheduler.finished(request.id);
    }
    waiting.forEach(request -> scheduler.finished(request.id));
    assertThat(scheduler.openRequests()).as("requests that leaked").isZero();
    pages.requireAllFree();
  }
}
