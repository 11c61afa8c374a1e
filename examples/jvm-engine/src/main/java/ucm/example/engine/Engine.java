package ucm.example.engine;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * An inference engine with one rank that serves one request at a time: it finds out how much of the
 * prompt is stored, loads that, computes the rest in chunks, and stores what it computed. Used by one
 * thread.
 *
 * <p>What matters to authors of engines is {@link #complete}, where both sides of the connector meet.
 * An engine with many requests does the same for all requests of a step at once; one with several
 * ranks hands the same plan to a {@link WorkerConnector} of each.
 */
final class Engine implements AutoCloseable {

  static final int BLOCK_TOKENS = 16;

  /**
   * What came of a prompt.
   *
   * @param logits after the last token of the prompt
   * @param tokens what was generated
   * @param loadedTokens tokens of the prompt that were not computed
   */
  // These are never compared.
  @SuppressWarnings("ArrayRecordComponent")
  record Completion(float[] logits, List<Integer> tokens, int loadedTokens) {}

  private final Model model;
  private final int chunkTokens;
  private final PagedKvCache cache;

  /** The numbers of the blocks of the KV cache that no request uses. */
  private final ArrayDeque<Integer> free = new ArrayDeque<>();

  private final Pipeline pipeline;
  private final WorkerConnector worker;
  private final SchedulerConnector scheduler;

  /**
   * Opens an engine and what keeps its KV cache.
   *
   * @param config the operator's
   * @param instance a name that no other engine on this machine has
   * @param blocks how many blocks of KV cache
   * @param chunkTokens most tokens that a step computes
   */
  Engine(Model model, UcmConfig config, String instance, int blocks, int chunkTokens) {
    this.model = model;
    this.chunkTokens = chunkTokens;
    ModelShape shape = model.shape();
    EngineSpec spec =
        new EngineSpec(
            instance,
            model.name(),
            "torch.float32",
            1,
            false,
            BLOCK_TOKENS,
            PagedKvCache.layout(shape, BLOCK_TOKENS));
    ConnectorSetup setup = ConnectorSetup.of(config, StoreCatalog.find(), spec);
    IntStream.range(0, blocks).forEach(free::add);
    this.pipeline = setup.openPipeline(0);
    this.cache = new PagedKvCache(shape, BLOCK_TOKENS, blocks);
    this.worker = setup.worker(0, cache.register(), pipeline);
    // One process and one rank: the scheduler side may look into the worker's pipeline.
    this.scheduler = setup.scheduler(pipeline);
  }

  /** Serves a prompt and generates some tokens, each time the likeliest. */
  Completion complete(String id, int[] prompt, int newTokens) throws InterruptedException {
    int[] tokens = Arrays.copyOf(prompt, prompt.length + newTokens);
    int[] table = take(Math.ceilDiv(tokens.length, BLOCK_TOKENS));
    try {
      // How much is stored? Nothing is on the device already, because nothing is kept there here.
      int matched = scheduler.matchedTokens(PromptRequest.of(id, prompt, newTokens), 0);
      scheduler.allocated(id, table, matched);
      float[] afterPrompt = {};
      int computed = matched;
      int known = prompt.length;
      while (known < tokens.length || computed < prompt.length) {
        int chunk = Math.min(chunkTokens, known - computed);
        StepPlan plan = scheduler.plan(List.of(ScheduledRequest.of(id, computed, chunk)));
        float[] logits = step(plan, tokens, computed, chunk, table);
        int right = rightTokens(worker.takeLoadErrors(), table, computed);
        if (right < computed) {
          // Blocks could not be loaded: compute them, and all after them.
          computed = right;
          matched = Math.min(matched, right);
          continue;
        }
        computed += chunk;
        if (computed == prompt.length) {
          afterPrompt = logits;
        }
        if (computed == known && known < tokens.length) {
          tokens[known++] = likeliest(logits);
        }
      }
      int[] generated = Arrays.copyOfRange(tokens, prompt.length, tokens.length);
      return new Completion(afterPrompt, Arrays.stream(generated).boxed().toList(), matched);
    } finally {
      scheduler.finished(id);
      Arrays.stream(table).forEach(free::add);
    }
  }

  /** Takes some blocks, or says that the cache is too small for the request. */
  private int[] take(int count) {
    if (count > free.size()) {
      throw new IllegalArgumentException(
          ("the request needs %s blocks of KV cache, and %s are free: shorten it, or give the"
                  + " engine more blocks")
              .formatted(count, free.size()));
    }
    return IntStream.range(0, count).map(i -> free.remove()).toArray();
  }

  /** A step: what the plan loads is loaded, layer by layer or at once, and what is computed saved. */
  private float[] step(StepPlan plan, int[] tokens, int from, int count, int[] table)
      throws InterruptedException {
    worker.startLoad(plan);
    boolean done = false;
    try {
      float[][] states = embed(tokens, from, count);
      for (int layer = 0; layer < model.shape().layers(); layer++) {
        worker.waitForLayerLoad(layer);
        for (int i = 0; i < count; i++) {
          model.layer(layer, states[i], cache, table, from + i);
        }
        worker.saveLayer(layer);
      }
      worker.waitForSave();
      done = true;
      return model.logits(states[count - 1]);
    } finally {
      if (!done) {
        worker.abandonStep();
      }
    }
  }

  private float[][] embed(int[] tokens, int from, int count) {
    float[][] states = new float[count][];
    for (int i = 0; i < count; i++) {
      states[i] = model.embed(tokens[from + i]);
    }
    return states;
  }

  /** How many of the computed tokens stand before the first block that could not be loaded. */
  private static int rightTokens(int[] errors, int[] table, int computed) {
    for (int i = 0; i * BLOCK_TOKENS < computed; i++) {
      if (Arrays.binarySearch(errors, table[i]) >= 0) {
        return i * BLOCK_TOKENS;
      }
    }
    return computed;
  }

  private static int likeliest(float[] logits) {
    int best = 0;
    for (int i = 1; i < logits.length; i++) {
      if (logits[i] > logits[best]) {
        best = i;
      }
    }
    return best;
  }

  /** Closes the connector before the memory it uses; the pipeline waits for its last writes. */
  @Override
  public void close() {
    try (cache;
        pipeline;
        worker;
        scheduler) {
      // Resources are closed from the last to the first.
    }
  }
}
