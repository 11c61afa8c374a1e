package ucm.bench.serve;

import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import ucm.bench.measure.BenchReport;
import ucm.bench.serve.ServeExperiment.Case;
import ucm.bench.serve.ServeExperiment.Load;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EnginePlan;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.pipeline.connector.engine.EngineSpec;

/** Shows what a simulated engine came to, with what is simulated said first. */
public final class ServeReport {

  private final String pipeline;
  private final EngineSpec spec;
  private final EnginePlan plan;
  private final ComputeModel compute;
  private final long bytesPerToken;
  private final long modelBytesPerToken;
  private final double loadBefore = BenchReport.loadAverage();

  private record Run(String engine, ServeResult result) {}

  public ServeReport(String pipeline, ServeSite site, ComputeModel compute, ServeModelOptions kv) {
    this.pipeline = pipeline;
    this.spec = site.spec();
    this.plan = site.plan();
    this.compute = compute;
    this.bytesPerToken = kv.storedBytesPerToken(spec);
    this.modelBytesPerToken = kv.modelBytesPerToken();
  }

  private Columns<Case> cases(int hitPercent) {
    return new Columns<Case>()
        .both("INPUT TOKENS", "input_tokens", one -> one.load().tokens(), ServeReport::grouped)
        .both("CONCURRENT", "concurrency", one -> one.load().concurrency(), ServeReport::grouped)
        .both(
            "FULL COMPUTE MS",
            "full_compute_ttft_ms",
            one -> one.full().meanTtftMillis(),
            ServeReport::millis)
        .both(
            "UCM " + hitPercent + "% MS",
            "hits_ttft_ms",
            Case::hitMillis,
            spread -> millis(spread.median()))
        .both("SPEED-UP", "speedup", Case::speedup, share -> percent("%+.1f%%", share))
        .both("HIT", "external_hit_rate", Case::hitRate, share -> percent("%.1f%%", share))
        .both(
            "LOADED GB",
            "loaded_bytes",
            one -> one.sum(ServeResult::loadedBlocks) * blockBytes(),
            bytes -> Figures.gigabytes(bytes))
        .data("load_failed_blocks", one -> one.sum(ServeResult::failedBlocks))
        .data("saved_blocks", one -> one.sum(ServeResult::savedBlocks))
        .both(
            "PREEMPTED", "preemptions", one -> one.sum(ServeResult::preemptions), Figures::grouped)
        .data("full_compute_preemptions", one -> one.full().preemptions())
        .data("steps", one -> one.hits().getFirst().steps())
        .data("most_requests_in_a_step", one -> one.hits().getFirst().mostRequests());
  }

  private Columns<Run> runs() {
    return new Columns<Run>()
        .text("ENGINE", Run::engine)
        .data("requests", run -> run.result.served().size())
        .data("prompt_tokens", run -> run.result.promptTokens())
        .data("hbm_tokens", run -> run.result.hbmTokens())
        .data("external_tokens", run -> run.result.externalTokens())
        .both(
            "TTFT MS: MEAN",
            "ttft_ms_mean",
            run -> run.result.meanTtftMillis(),
            ServeReport::millis)
        .both("P50", "ttft_ms_p50", run -> run.result.ttftMillis(0.5), ServeReport::millis)
        .both("P90", "ttft_ms_p90", run -> run.result.ttftMillis(0.9), ServeReport::millis)
        .both("P99", "ttft_ms_p99", run -> run.result.ttftMillis(0.99), ServeReport::millis)
        .text("HBM HIT", run -> share(run, run.result.hbmTokens()))
        .text("EXTERNAL HIT", run -> share(run, run.result.externalTokens()))
        .both(
            "LOADED GB",
            "loaded_bytes",
            run -> run.result.loadedBlocks() * blockBytes(),
            bytes -> Figures.gigabytes(bytes))
        .data("load_failed_blocks", run -> run.result.failedBlocks())
        .data("saved_blocks", run -> run.result.savedBlocks())
        .both("PREEMPTED", "preemptions", run -> run.result.preemptions(), ServeReport::grouped)
        .data("steps", run -> run.result.steps())
        .data("most_requests_in_a_step", run -> run.result.mostRequests())
        .both("SECONDS", "seconds", run -> run.result.seconds(), ServeReport::millis);
  }

  private static String grouped(int number) {
    return Figures.grouped(number);
  }

  private static String millis(double millis) {
    return Figures.fixed(millis, 1);
  }

  private static String percent(String format, double share) {
    return String.format(Locale.ROOT, format, 100 * share);
  }

  private static String share(Run run, long tokens) {
    return percent("%.1f%%", (double) tokens / run.result.promptTokens());
  }

  public Fields data(List<Case> cases, List<Load> leftOut, int hitPercent) {
    return data()
        .with("hit_percent", hitPercent)
        .with("left_out", leftOut.stream().map(Load::toString).toList())
        .with("results", cases(hitPercent).data(cases));
  }

  public void print(PrintWriter out, List<Case> cases, List<Load> leftOut, int hitPercent) {
    head(out);
    out.printf(
        "FULL COMPUTE is without UCM; for UCM %s%% that much of each prompt, in whole blocks, is in"
            + " the storage and nowhere else.%n%n",
        hitPercent);
    cases(hitPercent).table(cases).printSection(out);
    out.println(
        "Mean time to first token (TTFT). SPEED-UP is FULL COMPUTE by UCM, minus 1: +100% is twice"
            + " as soon.");
    cases.stream()
        .filter(each -> each.load().concurrency() == 1)
        .findFirst()
        .ifPresent(one -> rate(out, one));
    if (!leftOut.isEmpty()) {
      out.println(
          String.format(
              "Left out, as half of the available memory does not hold their KV "
                  + "cache (INPUT TOKENS x CONCURRENT): %s. --bytes-per-token makes it "
                  + "smaller.",
              leftOut.stream().map(Load::toString).collect(Collectors.joining(", "))));
    }
    foot(out, cases.stream().mapToLong(each -> each.sum(ServeResult::failedBlocks)).sum());
  }

  public Fields data(ServeResult full, ServeResult with, double speed) {
    return data()
        .with("speed", speed)
        .with("full_compute", runs().data(new Run("full compute", full)))
        .with("ucm", runs().data(new Run("with UCM", with)))
        .with("speedup", full.meanTtftMillis() / with.meanTtftMillis() - 1);
  }

  public void print(PrintWriter out, ServeResult full, ServeResult with, double speed) {
    head(out);
    out.printf(
        Locale.ROOT,
        "%,d requests of the trace, %,d tokens, %s times as fast as they came; the store is empty"
            + " at the beginning.%n%n",
        with.served().size(),
        with.promptTokens(),
        speed);
    runs()
        .table(List.of(new Run("full compute", full), new Run("with UCM", with)))
        .printSection(out);
    out.println(
        "TTFT counts the time in the queue. "
            + meanText(full.meanTtftMillis(), with.meanTtftMillis()));
    foot(out, with.failedBlocks());
  }

  /** What UCM does to the mean, in words that hold both ways. */
  static String meanText(double fullMillis, double withMillis) {
    double change = withMillis / fullMillis - 1;
    return "With UCM the mean is %s %s than with full compute."
        .formatted(percent("%.1f%%", Math.abs(change)), change > 0 ? "longer" : "shorter");
  }

  /** What decides whether hits pay: how fast the same bytes would be computed. */
  private void rate(PrintWriter out, Case one) {
    long tokens = one.load().tokens();
    out.printf(
        Locale.ROOT,
        "Full compute makes %.2f GB of KV cache a second at %,d tokens: hits pay where pipeline and"
            + " storage load faster than that.%n",
        tokens * bytesPerToken / one.full().meanTtftMillis() / 1e6,
        tokens);
  }

  private void head(PrintWriter out) {
    out.println("Simulated compute: " + compute + ". No model ran, and no GPU was used.");
    out.printf(
        Locale.ROOT,
        "Real: names of blocks, look-ups, and %,d bytes of KV cache a token through %s, from and to"
            + " host memory in the place of a GPU's.%n",
        bytesPerToken,
        pipeline);
    if (bytesPerToken != modelBytesPerToken) {
      out.printf(
          Locale.ROOT,
          "%s itself leaves %,d bytes a token: loading them would take %.0f times as long on this"
              + " machine.%n",
          spec.model(),
          modelBytesPerToken,
          (double) modelBytesPerToken / bytesPerToken);
    }
    out.printf(
        Locale.ROOT,
        "Engine: %d rank(s), %d layers, blocks of %d tokens, KV memory of %,d tokens, steps of at"
            + " most %,d tokens and %d requests, prefix cache on the device %s.%n",
        spec.tpSize(),
        spec.kv().layers(),
        spec.blockTokens(),
        (long) plan.kvBlocks() * spec.blockTokens(),
        plan.stepTokens(),
        plan.maxRunning(),
        plan.prefixCache() ? "on" : "off");
  }

  private void foot(PrintWriter out, long failedBlocks) {
    out.printf(
        Locale.ROOT,
        "Every loaded byte was compared, with the engine's clock stopped; %,d blocks could not be"
            + " loaded and were computed.%n",
        failedBlocks);
    BenchReport.printMachine(out, loadBefore);
  }

  private long blockBytes() {
    return bytesPerToken * spec.blockTokens();
  }

  private Fields data() {
    Fields data =
        new Fields()
            .with("simulated_compute", compute.toString())
            .with("pipeline", pipeline)
            .with("model", spec.model())
            .with("bytes_per_token", bytesPerToken)
            .with("model_bytes_per_token", modelBytesPerToken)
            .with("ranks", spec.tpSize())
            .with("layers", spec.kv().layers())
            .with("block_tokens", spec.blockTokens())
            .with("kv_tokens", (long) plan.kvBlocks() * spec.blockTokens())
            .with("step_tokens", plan.stepTokens())
            .with("max_requests", plan.maxRunning())
            .with("prefix_cache", plan.prefixCache());
    return BenchReport.addMachine(data, loadBefore);
  }
}
