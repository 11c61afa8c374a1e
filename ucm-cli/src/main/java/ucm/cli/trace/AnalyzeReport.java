package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.IntStream;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Table;
import ucm.lite.curve.CacheHits;
import ucm.lite.curve.CurveError;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalysis.Curves;
import ucm.lite.curve.TraceSummary;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.KvModel;
import ucm.lite.trace.TraceReadReport;

/** What {@code ucm trace analyze} prints. */
@SuppressWarnings("ArrayRecordComponent") // Reports are never compared.
record AnalyzeReport(
    TraceReadReport read,
    TraceAnalysis analysis,
    Optional<KvModel> model,
    long blockBytes,
    long[] capacities,
    List<PolicyHits> policies,
    TouchOrder policyOrder)
    implements FormatOptions.Report {

  private record Row(String policy, String order, CacheHits hits) {

    static Row of(LruCurve curve, long capacity) {
      return new Row("lru", curve.touchOrder().key(), curve.at(capacity));
    }
  }

  private static final Columns<Row> ROWS =
      new Columns<Row>()
          .data("policy", Row::policy)
          .data("touch_order", Row::order)
          .data("capacity_blocks", row -> row.hits.capacityBlocks())
          .data("hit_blocks", row -> row.hits.hitBlocks())
          .data("hit_tokens", row -> row.hits.hitTokens());

  /** A curve from a sample beside the exact one. */
  private record Sampled(LruCurve curve, CurveError error) {}

  private Columns<Sampled> errors() {
    return new Columns<Sampled>()
        .text("SAMPLED CURVE", one -> "lru " + one.curve.touchOrder().key())
        .data("touch_order", one -> one.curve.touchOrder().key())
        .both("BLOCKS SAMPLED", "sample_rate", one -> one.curve.sampleRate(), Figures::percent)
        .both("MEAN ERROR", "mean_error", one -> one.error.mean(), Figures::percent)
        .both("MAX ERROR", "max_error", one -> one.error.max(), Figures::percent)
        .both("AT", "max_error_at_blocks", one -> one.error.maxAtBlocks(), Figures::grouped)
        .data(
            "curve",
            one ->
                Arrays.stream(capacities)
                    .mapToObj(capacity -> ROWS.data(Row.of(one.curve, capacity)))
                    .toList());
  }

  private List<Sampled> sampled() {
    Optional<Curves> curves = analysis.exact() ? analysis.sampledCurves() : Optional.empty();
    return curves.stream()
        .flatMap(found -> Arrays.stream(TouchOrder.values()).map(found::of))
        .map(curve -> new Sampled(curve, error(curve)))
        .toList();
  }

  private CurveError error(LruCurve sampled) {
    return CurveError.between(analysis.lru(sampled.touchOrder()), sampled, analysis.summary());
  }

  @Override
  public void print(PrintWriter out) {
    totals(read, analysis).printSection(out);
    curve().printSection(out);
    double rate = analysis.lru(TouchOrder.LEAF_LAST).sampleRate();
    String how =
        analysis.exact()
            ? "LRU is exact"
            : "LRU is estimated from " + Figures.percent(rate) + " of the blocks";
    out.println(
        how
            + ". Share of input tokens; \"root last\" touches a prompt's blocks last to first, so"
            + " that leaves are evicted first.");
    model.ifPresent(
        kv ->
            out.println(
                "GB of KV cache of %s: %s bytes a block."
                    .formatted(kv.name(), Figures.grouped(blockBytes))));
    if (!policies.isEmpty()) {
      out.println();
      policyTable().printSection(out);
      out.println(
          "Share of input tokens, touched "
              + policyOrder.key()
              + "; opt (Belady) is what no policy can exceed.");
      if (!analysis.exact()) {
        out.println("All policies are simulated on the sampled blocks and scaled up.");
      }
    }
    if (!sampled().isEmpty()) {
      out.println();
      errors().table(sampled()).printSection(out);
      out.println(
          "Absolute difference from the exact share of input tokens, at 1% to 100% of the distinct"
              + " blocks.");
    }
  }

  /** The first table of commands that read a trace: what is in it. */
  static Table totals(TraceReadReport read, TraceAnalysis analysis) {
    TraceSummary summary = analysis.summary();
    String about = analysis.exact() ? "" : "about ";
    Table totals = new Table("TRACE", String.join(" ", read.inputs()));
    totals.row("format", read.format().toString());
    totals.row("requests", Figures.grouped(summary.requests()));
    totals.row("time span", Figures.fixed(summary.timeSpanMillis() / 1e3, 1) + " s");
    totals.row("input tokens", tokens(summary.inputTokens(), summary.meanInputTokens()));
    totals.row("output tokens", tokens(summary.outputTokens(), summary.meanOutputTokens()));
    String references = Figures.grouped(summary.blockReferences());
    totals.row("blocks", references + " of " + summary.blockTokens() + " tokens");
    totals.row("unique blocks", about + Figures.grouped(summary.uniqueBlocks()));
    totals.row(
        "ideal hit rate",
        "%s%s of tokens (%s), %s of blocks (%s)"
            .formatted(
                about,
                Figures.percent(summary.idealTokenHitRate()),
                Figures.grouped(summary.idealHitTokens()),
                Figures.percent(summary.idealBlockHitRate()),
                Figures.grouped(summary.idealHitBlocks())));
    return totals;
  }

  private static String tokens(long all, double mean) {
    return Figures.grouped(all) + " (mean " + Figures.grouped(Math.round(mean)) + ")";
  }

  private Table curve() {
    TraceSummary summary = analysis.summary();
    LruCurve leaf = analysis.lru(TouchOrder.LEAF_LAST);
    LruCurve root = analysis.lru(TouchOrder.ROOT_LAST);
    double ideal = Math.max(1, summary.idealHitTokens());
    double tokens = summary.blockTokens() / 1e6;
    Columns<Long> columns =
        new Columns<Long>()
            .text("CAPACITY (BLOCKS)", Figures::grouped)
            .text("MTOKENS", capacity -> Figures.fixed(capacity * tokens, 2));
    if (blockBytes > 0) {
      columns.text("GB", capacity -> Figures.gigabytes((double) blockBytes * capacity));
    }
    columns
        .text("LRU HIT TOKENS", capacity -> Figures.grouped(leaf.hitTokens(capacity)))
        .text("LRU", capacity -> rate(leaf.hitTokens(capacity)))
        .text("OF IDEAL", capacity -> Figures.percent(leaf.hitTokens(capacity) / ideal))
        .text("LRU ROOT LAST, TOKENS", capacity -> Figures.grouped(root.hitTokens(capacity)))
        .text("LRU ROOT LAST", capacity -> rate(root.hitTokens(capacity)));
    return columns.table(Arrays.stream(capacities).boxed().toList());
  }

  private String rate(long hitTokens) {
    return Figures.percent(analysis.summary().tokenHitRate(hitTokens));
  }

  private Table policyTable() {
    List<SimulatedPolicy> shown = policies.stream().map(PolicyHits::policy).distinct().toList();
    Columns<Integer> columns =
        new Columns<Integer>().text("CAPACITY (BLOCKS)", c -> Figures.grouped(capacities[c]));
    for (int p = 0; p < shown.size(); p++) {
      int first = p * capacities.length;
      columns.text(
          shown.get(p).key().toUpperCase(Locale.ROOT),
          c -> rate(policies.get(first + c).hits().hitTokens()));
    }
    return columns.table(IntStream.range(0, capacities.length).boxed().toList());
  }

  @Override
  public Fields data() {
    Fields data = inputs(read).with("exact", analysis.exact()).with("summary", analysis.summary());
    if (blockBytes > 0) {
      data.put("block_bytes", blockBytes);
    }
    data.with("knee_blocks", analysis.lru(TouchOrder.LEAF_LAST).kneeCapacity())
        .with("curve", ROWS.data(curveRows()));
    return sampled().isEmpty() ? data : data.with("sampled", errors().data(sampled()));
  }

  static Fields inputs(TraceReadReport read) {
    return new Fields()
        .with("inputs", read.inputs())
        .with("format", read.format().toString())
        .with("bad_lines", read.badLines());
  }

  /** The curves and policies as rows of a table, one a policy and capacity. */
  @Override
  public List<Fields> rows() {
    TraceSummary summary = analysis.summary();
    List<Fields> rows = new ArrayList<>();
    for (Row row : curveRows()) {
      long blocks = row.hits.capacityBlocks();
      Fields fields =
          ROWS.data(row)
              .with("token_hit_rate", summary.tokenHitRate(row.hits.hitTokens()))
              .with("capacity_tokens", blocks * summary.blockTokens());
      rows.add(blockBytes > 0 ? fields.with("capacity_bytes", blocks * blockBytes) : fields);
    }
    return rows;
  }

  private List<Row> curveRows() {
    List<Row> rows = new ArrayList<>();
    for (long capacity : capacities) {
      rows.add(Row.of(analysis.lru(TouchOrder.LEAF_LAST), capacity));
      rows.add(Row.of(analysis.lru(TouchOrder.ROOT_LAST), capacity));
    }
    for (PolicyHits simulated : policies) {
      TouchOrder order =
          simulated.policy() == SimulatedPolicy.OPTIMAL ? TouchOrder.LEAF_LAST : policyOrder;
      rows.add(new Row(simulated.policy().key(), order.key(), simulated.hits()));
    }
    return rows;
  }
}
