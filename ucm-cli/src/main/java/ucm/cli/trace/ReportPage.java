package ucm.cli.trace;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.OutputFile;
import ucm.cli.runtime.ProductVersion;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalysis.Curves;
import ucm.lite.curve.TraceSummary;
import ucm.lite.insight.TraceInsights;
import ucm.lite.insight.TraceInsights.HotPrefix;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.ServingResult;
import ucm.lite.trace.TraceReadReport;

/**
 * The page of {@code --html}: one file that needs nothing else. Style, script, chart library (Apache
 * ECharts) and data are inside, and its content security policy forbids to fetch anything. The data, which
 * {@code report.js} reads, is collected first; a part that is not added is left out of the page.
 */
public final class ReportPage {

  /** Capacities at which a curve is drawn, evenly spaced on a logarithmic axis. */
  private static final int CURVE_POINTS = 400;

  private static final int[] SHARES_OF_IDEAL = {50, 90, 99};

  private static final List<String> PARTS =
      List.of("report.css", "echarts.common.min.js", "report.js");

  private final Fields data = new Fields();
  private final List<String> advice = new ArrayList<>();
  private final TraceAnalysis analysis;
  private final TraceSummary summary;
  private final long blockBytes;

  /**
   * Begins a page with the totals and the curves of a trace; without a model, a block has 0 bytes.
   */
  public ReportPage(
      TraceReadReport read, TraceAnalysis analysis, String modelName, long blockBytes) {
    this.analysis = analysis;
    this.summary = analysis.summary();
    this.blockBytes = blockBytes;
    // Without their folders, which readers of the page need not see.
    String names =
        read.inputs().stream()
            .map(input -> input.substring(input.lastIndexOf('/') + 1))
            .collect(Collectors.joining(" "));
    LruCurve best = analysis.lru(TouchOrder.LEAF_LAST);
    List<Object> curves = new ArrayList<>();
    for (TouchOrder order : TouchOrder.values()) {
      String how = analysis.exact() ? "LRU, " : "LRU (sampled), ";
      curves.add(curve(how + order.key().replace('_', ' '), analysis.lru(order)));
    }
    if (analysis.exact()) {
      analysis
          .sampledCurves()
          .map(Curves::leafLast)
          .ifPresent(
              curve ->
                  curves.add(
                      curve("LRU, leaf last, from " + Figures.percent(curve.sampleRate()), curve)));
    }
    data.with("title", "What a KV cache is worth: " + names)
        .with(
            "made",
            "ucm " + ProductVersion.text() + ", " + Instant.now().truncatedTo(ChronoUnit.SECONDS))
        .with("facts", facts(read))
        .with("block_tokens", Math.max(1, summary.blockTokens()))
        .with("block_bytes", blockBytes)
        .with("model", modelName)
        .with("ideal", summary.idealTokenHitRate())
        .with("sampled", analysis.exact() ? 0 : best.sampleRate())
        .with("curves", curves)
        .with("knee", List.of(best.kneeCapacity(), rate(best.hitTokens(best.kneeCapacity()))));
    advise(best);
  }

  private List<List<String>> facts(TraceReadReport read) {
    String about = analysis.exact() ? "" : "about ";
    List<List<String>> facts = new ArrayList<>();
    facts.add(List.of("Requests", Figures.grouped(summary.requests())));
    facts.add(List.of("Time span", Figures.duration(summary.timeSpanMillis() / 1e3)));
    facts.add(tokens("Input tokens", summary.inputTokens(), summary.meanInputTokens()));
    facts.add(tokens("Output tokens", summary.outputTokens(), summary.meanOutputTokens()));
    facts.add(
        List.of(
            "Unique blocks",
            about + Figures.grouped(summary.uniqueBlocks()),
            "of " + Figures.grouped(summary.blockReferences()) + " references"));
    String ideal = about + Figures.percent(summary.idealTokenHitRate());
    facts.add(List.of("Ideal hit rate", ideal, "of input tokens"));
    if (read.badLines() > 0) {
      facts.add(List.of("Bad lines skipped", Figures.grouped(read.badLines())));
    }
    return facts;
  }

  private static List<String> tokens(String name, long all, double mean) {
    return List.of(name, Figures.grouped(all), "mean " + Figures.grouped(Math.round(mean)));
  }

  private Fields curve(String name, LruCurve curve) {
    TreeSet<Long> capacities = new TreeSet<>();
    double most = (double) Math.max(1, summary.uniqueBlocks());
    for (int point = 0; point <= CURVE_POINTS; point++) {
      capacities.add(Math.round(Math.pow(most, (double) point / CURVE_POINTS)));
    }
    capacities.add(Math.max(1, curve.kneeCapacity()));
    return named(
        name,
        capacities.stream()
            .map(capacity -> List.of(capacity, rate(curve.hitTokens(capacity))))
            .toList());
  }

  private static Fields named(String name, List<?> points) {
    return new Fields().with("name", name).with("points", points);
  }

  /** Sentences about sizes, from the LRU curve alone; in bytes, too, where a model was named. */
  private void advise(LruCurve curve) {
    if (curve.stepCount() == 0) {
      advice.add("No prompt begins like an earlier one: a prefix cache would hit nothing.");
      return;
    }
    long knee = curve.kneeCapacity();
    advice.add(
        String.format(
            "The knee of the curve is at %s (hit rate %s): more than that brings less than its"
                + " share.",
            size(knee), Figures.percent(rate(curve.hitTokens(knee)))));
    for (int share : SHARES_OF_IDEAL) {
      long most = curve.hitTokens(LruCurve.UNBOUNDED);
      long capacity = curve.smallestCapacity(Math.ceilDiv(most * share, 100));
      advice.add(share + "% of the ideal hit rate takes " + size(capacity) + " under LRU.");
    }
  }

  private String size(long blocks) {
    String tokens = Figures.fixed((double) blocks * summary.blockTokens() / 1e6, 2);
    String text = Figures.grouped(blocks) + " blocks (" + tokens + " M tokens)";
    return blockBytes == 0
        ? text
        : Figures.gigabytes((double) blocks * blockBytes) + " GB, " + text;
  }

  /** Adds simulated policies, but for LRU, whose curve is there. */
  void policies(List<PolicyHits> policies) {
    Map<String, List<Object>> points = new LinkedHashMap<>();
    for (PolicyHits simulated : policies) {
      if (simulated.policy() != SimulatedPolicy.LRU) {
        points
            .computeIfAbsent(simulated.policy().key(), _ -> new ArrayList<>())
            .add(List.of(simulated.hits().capacityBlocks(), rate(simulated.hits().hitTokens())));
      }
    }
    data.put(
        "policies",
        points.entrySet().stream().map(one -> named(one.getKey(), one.getValue())).toList());
  }

  /** Adds reuse in time and hot prefixes. */
  public void insights(TraceInsights insights) {
    long blockTokens = summary.blockTokens();
    Columns<HotPrefix> hot =
        new Columns<HotPrefix>()
            .data("id", HotPrefix::lastBlockId)
            .data("blocks", HotPrefix::blocks)
            .data("tokens", prefix -> prefix.blocks() * blockTokens)
            .data("requests", HotPrefix::requests);
    data.with("time_bins", insights.timeBins())
        .with("hot_prefixes", hot.data(insights.hotPrefixes()));
    if (insights.blockGaps().count() > 0) {
      advice.add(
          String.format(
              "Nine of ten reuses of a block come within %s, ninety-nine of a hundred within %s.",
              Figures.duration(insights.blockGaps().p90()),
              Figures.duration(insights.blockGaps().p99())));
    }
  }

  /** Adds what the tiers of a cluster hit. */
  public void tiers(String cluster, List<Fields> rows, List<List<String>> facts) {
    data.with("cluster", cluster).with("tiers", rows).with("tier_facts", facts);
  }

  /** Adds times to first token, which are simulated. */
  public void serving(ServingResult serving) {
    Fields ttft = new Fields().with("without", times(serving.ttftWithout()));
    data.put("ttft", ttft.with("with", times(serving.ttftWith())));
  }

  private static List<Double> times(Quantiles times) {
    return List.of(times.mean(), times.p50(), times.p90(), times.p99());
  }

  public void advice(String sentence) {
    advice.add(sentence);
  }

  public void yaml(String yaml) {
    data.put("yaml", yaml);
  }

  /** Writes the page; the file appears when it is complete. */
  public void write(Path file, PrintWriter standardOutput) {
    String page = text("report.html");
    for (String part : PARTS) {
      page = page.replace("@@" + part + "@@", text(part));
    }
    data.put("advice", advice);
    // Within a script element, nothing but "<" could end it or begin a comment.
    String json = JsonMapper.shared().writeValueAsString(data).replace("<", "\\u003c");
    // Last, as names in it may look like the place of a part.
    OutputFile.write(file, page.replace("@@data@@", json), standardOutput);
  }

  private static String text(String name) {
    try (InputStream stream = ReportPage.class.getResourceAsStream("report/" + name)) {
      if (stream == null) {
        throw new IllegalStateException("this build lacks " + name);
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + name + " of this build", e);
    }
  }

  private double rate(long tokens) {
    return summary.tokenHitRate(tokens);
  }
}
