package ucm.cli.trace;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import ucm.cli.output.Figures;
import ucm.cli.runtime.ProductVersion;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.LruCurves;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceSummary;
import ucm.lite.insight.HotPrefix;
import ucm.lite.insight.TraceInsights;
import ucm.lite.policy.CachePolicy;
import ucm.lite.policy.PolicyHits;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.ServingResult;
import ucm.lite.trace.TraceReadReport;

/**
 * Collects what the page of {@code --html} shows, as plain data; a part that is not added is left out
 * of the page. {@code report.js} reads it.
 */
public final class ReportPage {

  /** Capacities at which a curve is drawn, evenly spaced on a logarithmic axis. */
  private static final int CURVE_POINTS = 400;

  private final Map<String, Object> data = new LinkedHashMap<>();
  private final List<String> advice = new ArrayList<>();
  private final TraceAnalysis analysis;
  private final TraceSummary summary;

  /**
   * Begins a page with the totals and the curves of a trace; without a model, a block has 0 bytes.
   */
  public ReportPage(
      TraceReadReport read,
      TraceAnalysis analysis,
      String modelName,
      long blockBytes,
      Instant now) {
    this.analysis = analysis;
    this.summary = analysis.summary();
    data.put("title", "What a KV cache is worth: " + names(read));
    data.put("made", "ucm " + ProductVersion.text() + ", " + now.truncatedTo(ChronoUnit.SECONDS));
    data.put("facts", facts(read));
    data.put("block_tokens", Math.max(1, summary.blockTokens()));
    data.put("block_bytes", blockBytes);
    data.put("model", modelName);
    data.put("ideal", summary.idealTokenHitRate());
    data.put("sampled", analysis.exact() ? 0 : analysis.lru(TouchOrder.LEAF_LAST).sampleRate());
    List<Object> curves = new ArrayList<>();
    for (TouchOrder order : TouchOrder.values()) {
      String how = analysis.exact() ? "LRU, " : "LRU (sampled), ";
      curves.add(curve(how + order.key().replace('_', ' '), analysis.lru(order)));
    }
    if (analysis.exact()) {
      analysis.sampledCurves().ifPresent(sampled -> curves.add(sampledCurve(sampled)));
    }
    data.put("curves", curves);
    LruCurve best = analysis.lru(TouchOrder.LEAF_LAST);
    data.put("knee", List.of(best.kneeCapacity(), rate(best.hitTokens(best.kneeCapacity()))));
    advice.addAll(CurveAdvice.of(analysis, blockBytes));
  }

  /** Names without their folders, which readers of the page need not see. */
  private static String names(TraceReadReport read) {
    return read.inputs().stream()
        .map(input -> input.substring(input.lastIndexOf('/') + 1))
        .collect(Collectors.joining(" "));
  }

  private List<List<String>> facts(TraceReadReport read) {
    String about = analysis.exact() ? "" : "about ";
    List<List<String>> facts = new ArrayList<>();
    facts.add(List.of("Requests", Figures.grouped(summary.requests())));
    facts.add(List.of("Time span", Figures.duration(summary.timeSpanMillis() / 1e3)));
    facts.add(
        List.of(
            "Input tokens",
            Figures.grouped(summary.inputTokens()),
            "mean " + Figures.grouped(Math.round(summary.meanInputTokens()))));
    facts.add(
        List.of(
            "Output tokens",
            Figures.grouped(summary.outputTokens()),
            "mean " + Figures.grouped(Math.round(summary.meanOutputTokens()))));
    facts.add(
        List.of(
            "Unique blocks",
            about + Figures.grouped(summary.uniqueBlocks()),
            "of " + Figures.grouped(summary.blockReferences()) + " references"));
    facts.add(
        List.of(
            "Ideal hit rate",
            about + Figures.percent(summary.idealTokenHitRate()),
            "of input tokens"));
    if (read.badLines() > 0) {
      facts.add(List.of("Bad lines skipped", Figures.grouped(read.badLines())));
    }
    return facts;
  }

  private Map<String, Object> sampledCurve(LruCurves sampled) {
    LruCurve curve = sampled.leafLast();
    return curve("LRU, leaf last, from " + Figures.percent(curve.sampleRate()), curve);
  }

  private Map<String, Object> curve(String name, LruCurve curve) {
    TreeSet<Long> capacities = new TreeSet<>();
    double most = (double) Math.max(1, summary.uniqueBlocks());
    for (int point = 0; point <= CURVE_POINTS; point++) {
      capacities.add(Math.round(Math.pow(most, (double) point / CURVE_POINTS)));
    }
    capacities.add(Math.max(1, curve.kneeCapacity()));
    List<Object> points = new ArrayList<>();
    for (long capacity : capacities) {
      points.add(List.of(capacity, rate(curve.hitTokens(capacity))));
    }
    return Map.of("name", name, "points", points);
  }

  /** Adds simulated policies, but for LRU, whose curve is there. */
  void policies(List<PolicyHits> policies) {
    Map<String, List<Object>> points = new LinkedHashMap<>();
    for (PolicyHits simulated : policies) {
      if (simulated.policy() == CachePolicy.LRU) {
        continue;
      }
      points
          .computeIfAbsent(simulated.policy().key(), _ -> new ArrayList<>())
          .add(List.of(simulated.hits().capacityBlocks(), rate(simulated.hits().hitTokens())));
    }
    List<Object> named = new ArrayList<>();
    points.forEach((name, hits) -> named.add(Map.of("name", name, "points", hits)));
    data.put("policies", named);
  }

  /** Adds reuse in time and hot prefixes. */
  public void insights(TraceInsights insights) {
    data.put("time_bins", insights.timeBins());
    List<Object> hot = new ArrayList<>();
    for (HotPrefix prefix : insights.hotPrefixes()) {
      Map<String, Object> row = new LinkedHashMap<>();
      row.put("id", prefix.lastBlockId());
      row.put("blocks", prefix.blocks());
      row.put("tokens", (long) prefix.blocks() * summary.blockTokens());
      row.put("requests", prefix.requests());
      hot.add(row);
    }
    data.put("hot_prefixes", hot);
    if (insights.blockGaps().count() > 0) {
      advice.add(
          String.format(
              "Nine of ten reuses of a block come within %s, ninety-nine of a hundred within %s.",
              Figures.duration(insights.blockGaps().p90()),
              Figures.duration(insights.blockGaps().p99())));
    }
  }

  /** Adds what the tiers of a cluster hit. */
  public void tiers(String cluster, List<Map<String, Object>> rows, List<List<String>> facts) {
    data.put("cluster", cluster);
    data.put("tiers", rows);
    data.put("tier_facts", facts);
  }

  /** Adds times to first token, which are simulated. */
  public void serving(ServingResult serving) {
    data.put(
        "ttft", Map.of("without", times(serving.ttftWithout()), "with", times(serving.ttftWith())));
  }

  private static List<Double> times(Quantiles times) {
    return List.of(times.mean(), times.p50(), times.p90(), times.p99());
  }

  /** Adds a sentence of advice. */
  public void advice(String sentence) {
    advice.add(sentence);
  }

  /** Adds a suggested configuration. */
  public void yaml(String yaml) {
    data.put("yaml", yaml);
  }

  /** What was added. */
  public Map<String, Object> data() {
    data.put("advice", advice);
    return data;
  }

  private double rate(long tokens) {
    return summary.tokenHitRate(tokens);
  }
}
