package ucm.bench.serve;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import ucm.bench.measure.BenchReport;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EnginePlan;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Figures;
import ucm.cli.output.Json;
import ucm.cli.output.Table;
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

  public ServeReport(String pipeline, ServeSite site, ComputeModel compute, ServeKvOptions kv) {
    this.pipeline = pipeline;
    this.spec = site.spec();
    this.plan = site.plan();
    this.compute = compute;
    this.bytesPerToken = kv.storedBytesPerToken(spec);
    this.modelBytesPerToken = kv.modelBytesPerToken();
  }

  public void print(
      PrintWriter out,
      List<ServeCase> cases,
      List<ServeLoad> leftOut,
      int hitPercent,
      boolean json) {
    if (json) {
      Map<String, Object> data = data();
      data.put("hit_percent", hitPercent);
      data.put("left_out", leftOut.stream().map(ServeLoad::toString).toList());
      data.put("results", cases.stream().map(each -> each.data(blockBytes())).toList());
      Json.print(out, data);
      return;
    }
    head(out);
    out.printf(
        Locale.ROOT,
        "FULL COMPUTE is without UCM; for UCM %d%% that much of each prompt, in whole blocks, is in"
            + " the storage and nowhere else.%n%n",
        hitPercent);
    Table table =
        new Table(
            "INPUT TOKENS",
            "CONCURRENT",
            "FULL COMPUTE MS",
            "UCM " + hitPercent + "% MS",
            "SPEED-UP",
            "HIT",
            "LOADED GB",
            "PREEMPTED");
    for (ServeCase each : cases) {
      table.row(
          Figures.grouped(each.tokens()),
          Figures.grouped(each.concurrency()),
          Figures.fixed(each.fullMillis(), 1),
          Figures.fixed(each.hitMillis().median(), 1),
          String.format(Locale.ROOT, "%+.1f%%", 100 * each.speedup()),
          String.format(Locale.ROOT, "%.1f%%", 100 * each.hitRate()),
          Figures.gigabytes((double) each.loadedBlocks() * blockBytes()),
          Figures.grouped(each.preemptions()));
    }
    table.print(out);
    out.println();
    out.println(
        "Mean time to first token (TTFT). SPEED-UP is FULL COMPUTE by UCM, minus 1: +100% is twice"
            + " as soon.");
    cases.stream()
        .filter(each -> each.concurrency() == 1)
        .findFirst()
        .ifPresent(one -> rate(out, one));
    if (!leftOut.isEmpty()) {
      out.println(
          "Left out, as half of the available memory does not hold their KV cache (INPUT TOKENS x"
              + " CONCURRENT): "
              + leftOut.stream().map(ServeLoad::toString).collect(Collectors.joining(", "))
              + ". --bytes-per-token makes it smaller.");
    }
    long failed = cases.stream().mapToLong(ServeCase::failedBlocks).sum();
    foot(out, failed);
  }

  public void print(
      PrintWriter out, ServeResult full, ServeResult with, double speed, boolean json) {
    if (json) {
      Map<String, Object> data = data();
      data.put("speed", speed);
      data.put("full_compute", traceData(full));
      data.put("ucm", traceData(with));
      data.put("speedup", full.meanTtftMillis() / with.meanTtftMillis() - 1);
      Json.print(out, data);
      return;
    }
    head(out);
    out.printf(
        Locale.ROOT,
        "%,d requests of the trace, %,d tokens, %s times as fast as they came; the store is empty"
            + " at the beginning.%n%n",
        with.served().size(),
        with.promptTokens(),
        speed);
    Table table =
        new Table(
            "ENGINE",
            "TTFT MS: MEAN",
            "P50",
            "P90",
            "P99",
            "HBM HIT",
            "EXTERNAL HIT",
            "LOADED GB",
            "PREEMPTED",
            "SECONDS");
    row(table, "full compute", full);
    row(table, "with UCM", with);
    table.print(out);
    out.println();
    out.printf(
        Locale.ROOT,
        "TTFT counts the time in the queue. %s%n",
        meanText(full.meanTtftMillis(), with.meanTtftMillis()));
    foot(out, with.failedBlocks());
  }

  /** What UCM does to the mean, in words that hold both ways. */
  public static String meanText(double fullMillis, double withMillis) {
    double change = 100 * (withMillis / fullMillis - 1);
    return String.format(
        Locale.ROOT,
        "With UCM the mean is %.1f%% %s than with full compute.",
        Math.abs(change),
        change > 0 ? "longer" : "shorter");
  }

  private void row(Table table, String name, ServeResult result) {
    table.row(
        name,
        Figures.fixed(result.meanTtftMillis(), 1),
        Figures.fixed(result.ttftMillis(0.5), 1),
        Figures.fixed(result.ttftMillis(0.9), 1),
        Figures.fixed(result.ttftMillis(0.99), 1),
        percent(result.hbmTokens(), result.promptTokens()),
        percent(result.externalTokens(), result.promptTokens()),
        Figures.gigabytes((double) result.loadedBlocks() * blockBytes()),
        Figures.grouped(result.preemptions()),
        Figures.fixed(result.seconds(), 1));
  }

  /** What decides whether hits pay: how fast the same bytes would be computed. */
  private void rate(PrintWriter out, ServeCase one) {
    out.printf(
        Locale.ROOT,
        "Full compute makes %.2f GB of KV cache a second at %,d tokens: hits pay where pipeline and"
            + " storage load faster than that.%n",
        one.tokens() * bytesPerToken / one.fullMillis() / 1e6,
        one.tokens());
  }

  private static String percent(long part, long whole) {
    return String.format(Locale.ROOT, "%.1f%%", 100.0 * part / whole);
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

  private Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("simulated_compute", compute.toString());
    data.put("pipeline", pipeline);
    data.put("model", spec.model());
    data.put("bytes_per_token", bytesPerToken);
    data.put("model_bytes_per_token", modelBytesPerToken);
    data.put("ranks", spec.tpSize());
    data.put("layers", spec.kv().layers());
    data.put("block_tokens", spec.blockTokens());
    data.put("kv_tokens", (long) plan.kvBlocks() * spec.blockTokens());
    data.put("step_tokens", plan.stepTokens());
    data.put("max_requests", plan.maxRunning());
    data.put("prefix_cache", plan.prefixCache());
    BenchReport.addMachine(data, loadBefore);
    return data;
  }

  private Map<String, Object> traceData(ServeResult result) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("requests", result.served().size());
    data.put("prompt_tokens", result.promptTokens());
    data.put("hbm_tokens", result.hbmTokens());
    data.put("external_tokens", result.externalTokens());
    data.put("ttft_ms_mean", result.meanTtftMillis());
    data.put("ttft_ms_p50", result.ttftMillis(0.5));
    data.put("ttft_ms_p90", result.ttftMillis(0.9));
    data.put("ttft_ms_p99", result.ttftMillis(0.99));
    data.put("loaded_bytes", result.loadedBlocks() * blockBytes());
    data.put("load_failed_blocks", result.failedBlocks());
    data.put("saved_blocks", result.savedBlocks());
    data.put("preemptions", result.preemptions());
    data.put("steps", result.steps());
    data.put("most_requests_in_a_step", result.mostRequests());
    data.put("seconds", result.seconds());
    return data;
  }
}
