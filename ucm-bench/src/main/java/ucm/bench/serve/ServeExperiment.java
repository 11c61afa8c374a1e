package ucm.bench.serve;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EngineSimulator;
import ucm.bench.simulator.Prompts;
import ucm.bench.simulator.ServeEngine;
import ucm.bench.simulator.ServeRequest;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;

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

  /** Requests of so many tokens each, some at once. */
  public record Load(int tokens, int concurrency) {

    @Override
    public String toString() {
      return String.format(Locale.ROOT, "%,d x %,d", tokens, concurrency);
    }
  }

  /** What a load came to in full, and with part of each prompt stored, a run for each repetition. */
  public record Case(Load load, ServeResult full, List<ServeResult> hits) {

    Spread hitMillis() {
      return Spread.of(hits.stream().mapToDouble(ServeResult::meanTtftMillis).toArray());
    }

    /** How much sooner the first token comes: 1 is twice as soon. */
    double speedup() {
      return full.meanTtftMillis() / hitMillis().median() - 1;
    }

    /** Tokens that were found outside, as a share of all prompts. */
    double hitRate() {
      return hits.stream()
          .mapToDouble(run -> (double) run.externalTokens() / run.promptTokens())
          .average()
          .orElse(0);
    }

    long sum(ToLongFunction<ServeResult> of) {
      return hits.stream().mapToLong(of).sum();
    }
  }

  /** An experiment in which a share of each prompt is stored, in whole blocks. */
  public ServeExperiment(ServeSite site, ComputeModel compute, double hitShare, int outputTokens) {
    this.site = site;
    this.compute = compute;
    this.hitShare = hitShare;
    this.outputTokens = outputTokens;
  }

  /** Runs loads some times, each time with other prompts; a first one does not count. */
  public List<Case> run(List<Load> loads, Load warmUp, int repeat) throws InterruptedException {
    long requests = loads.stream().mapToLong(Load::concurrency).sum() * repeat;
    List<Case> cases = new ArrayList<>();
    try (Progress progress = new Progress("bench serve", requests)) {
      for (int round = 0; round < WARM_UP_ROUNDS; round++) {
        ServeResult _ = hits(warmUp, progress, 0);
      }
      long done = 0;
      for (Load load : loads) {
        List<ServeResult> hits = new ArrayList<>();
        for (int round = 0; round < repeat; round++) {
          hits.add(hits(load, progress, done));
          done += load.concurrency();
          progress.at(done);
        }
        ServeResult full =
            EngineSimulator.computeEverything(
                site.plan(), site.hasher(), compute, requests(load, load.tokens()));
        cases.add(new Case(load, full, hits));
      }
    }
    return cases;
  }

  private ServeResult hits(Load load, Progress progress, long done) throws InterruptedException {
    int blockTokens = site.spec().blockTokens();
    int stored = (int) (hitShare * load.tokens()) / blockTokens * blockTokens;
    seed += 2L * load.concurrency();
    String name = "case-" + seed;
    try {
      if (stored > 0) {
        fill(name, stored, load.concurrency());
      }
      try (ServeEngine engine = site.open(name)) {
        return engine.run(
            site.plan(), compute, requests(load, stored), finished -> progress.at(done + finished));
      }
    } finally {
      site.remove(name);
    }
  }

  private void fill(String name, int tokens, int concurrency) throws InterruptedException {
    try (ServeEngine engine = site.open(name)) {
      List<ServeRequest> prefixes =
          IntStream.range(0, concurrency)
              .mapToObj(i -> new ServeRequest("prefix-" + i, prompt(i, tokens, tokens), 1, 0))
              .toList();
      ServeResult _ = engine.run(site.plan(), ComputeModel.FREE, prefixes, _ -> {});
      engine.flush(site.patience());
    }
  }

  private List<ServeRequest> requests(Load load, int stored) {
    return IntStream.range(0, load.concurrency())
        .mapToObj(
            i ->
                new ServeRequest("request-" + i, prompt(i, stored, load.tokens()), outputTokens, 0))
        .toList();
  }

  private int[] prompt(int i, int stored, int tokens) {
    return Prompts.of(seed + 2L * i, stored, seed + 2L * i + 1, tokens);
  }
}
