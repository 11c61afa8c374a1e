package ucm.bench.serve;

import java.util.ArrayList;
import java.util.List;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EngineSimulator;
import ucm.bench.simulator.Prompts;
import ucm.bench.simulator.ServeEngine;
import ucm.bench.simulator.ServeRequest;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Progress;

/**
 * The experiment of the original's documentation: requests of one length, some at once, computed in full
 * and with part of each prompt in the store. What is to be found is stored by another engine, which is
 * closed before, so that it comes from the storage and not from the memory of a stage.
 */
public final class ServeExperiment {

  private static final int WARM_UP_ROUNDS = 2;

  private final ServeSite site;
  private final ComputeModel compute;
  private final double hitShare;
  private final int outputTokens;
  private long seed = 1;

  /**
   * Prepares.
   *
   * @param hitShare of each prompt that is stored, in whole blocks
   */
  public ServeExperiment(ServeSite site, ComputeModel compute, double hitShare, int outputTokens) {
    this.site = site;
    this.compute = compute;
    this.hitShare = hitShare;
    this.outputTokens = outputTokens;
  }

  /** Runs a case that does not count, so that the first one that does meets warm code. */
  public void warmUp(int tokens, int concurrency, Progress progress) throws InterruptedException {
    for (int round = 0; round < WARM_UP_ROUNDS; round++) {
      ServeResult _ = hits(tokens, concurrency, progress, 0);
    }
  }

  /** Runs a case some times, each time with other prompts. */
  public ServeCase run(int tokens, int concurrency, int repeat, Progress progress, long before)
      throws InterruptedException {
    List<ServeResult> hits = new ArrayList<>();
    for (int round = 0; round < repeat; round++) {
      long done = before + (long) round * concurrency;
      hits.add(hits(tokens, concurrency, progress, done));
    }
    ServeResult full =
        EngineSimulator.computeEverything(
            site.plan(), site.hasher(), compute, requests(tokens, tokens, concurrency));
    return new ServeCase(tokens, concurrency, full, hits);
  }

  private ServeResult hits(int tokens, int concurrency, Progress progress, long done)
      throws InterruptedException {
    int blockTokens = site.spec().blockTokens();
    int stored = (int) (hitShare * tokens) / blockTokens * blockTokens;
    seed += 2L * concurrency;
    String name = "case-" + seed;
    try {
      if (stored > 0) {
        fill(name, stored, concurrency);
      }
      try (ServeEngine engine = site.open(name)) {
        return engine.run(
            site.plan(),
            compute,
            requests(tokens, stored, concurrency),
            finished -> progress.at(done + finished));
      }
    } finally {
      site.remove(name);
    }
  }

  private void fill(String name, int tokens, int concurrency) throws InterruptedException {
    try (ServeEngine engine = site.open(name)) {
      List<ServeRequest> prefixes = new ArrayList<>();
      for (int i = 0; i < concurrency; i++) {
        prefixes.add(new ServeRequest("prefix-" + i, prompt(i, tokens, tokens), 1, 0));
      }
      ServeResult _ = engine.run(site.plan(), ComputeModel.FREE, prefixes, _ -> {});
      engine.flush(site.patience());
    }
  }

  private List<ServeRequest> requests(int tokens, int stored, int concurrency) {
    List<ServeRequest> requests = new ArrayList<>();
    for (int i = 0; i < concurrency; i++) {
      requests.add(new ServeRequest("request-" + i, prompt(i, stored, tokens), outputTokens, 0));
    }
    return requests;
  }

  private int[] prompt(int i, int stored, int tokens) {
    return Prompts.of(seed + 2L * i, stored, seed + 2L * i + 1, tokens);
  }
}
