package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import ucm.cli.output.Figures;
import ucm.cli.output.FormattedReport;
import ucm.cli.output.Table;
import ucm.lite.curve.CacheHits;
import ucm.lite.curve.CurveError;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.LruCurves;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.policy.CachePolicy;
import ucm.lite.policy.PolicyHits;
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
    implements FormattedReport {

  @Override
  public void print(PrintWriter out) {
    TraceTotals.table(read, analysis.summary(), analysis.exact()).print(out);
    out.println();
    curve().print(out);
    out.println();
    String how =
        analysis.exact()
            ? "LRU is exact"
            : "LRU is estimated from "
                + Figures.percent(analysis.lru(TouchOrder.LEAF_LAST).sampleRate())
                + " of the blocks";
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
      policyTable().print(out);
      out.println();
      out.println(
          "Share of input tokens, touched "
              + policyOrder.key()
              + "; prefix-lru evicts leaves first; opt (Belady) is what no policy can exceed.");
      if (!analysis.exact()) {
        out.println("All policies are simulated on the sampled blocks and scaled up.");
      }
    }
    if (analysis.exact()) {
      analysis.sampledCurves().ifPresent(sampled -> printError(out, sampled));
    }
  }

  private Table curve() {
    List<String> head = new ArrayList<>(List.of("CAPACITY (BLOCKS)", "MTOKENS"));
    if (blockBytes > 0) {
      head.add("GB");
    }
    head.addAll(
        List.of("LRU HIT TOKENS", "LRU", "OF IDEAL", "LRU ROOT LAST, TOKENS", "LRU ROOT LAST"));
    Table table = new Table(head.toArray(String[]::new));
    for (long capacity : capacities) {
      CacheHits leaf = analysis.lru(TouchOrder.LEAF_LAST).at(capacity);
      CacheHits root = analysis.lru(TouchOrder.ROOT_LAST).at(capacity);
      List<String> row = new ArrayList<>(List.of(Figures.grouped(capacity), mtokens(capacity)));
      if (blockBytes > 0) {
        row.add(Figures.gigabytes((double) blockBytes * capacity));
      }
      row.add(Figures.grouped(leaf.hitTokens()));
      row.add(Figures.percent(analysis.summary().tokenHitRate(leaf.hitTokens())));
      row.add(Figures.percent(ratio(leaf.hitTokens(), analysis.summary().idealHitTokens())));
      row.add(Figures.grouped(root.hitTokens()));
      row.add(Figures.percent(analysis.summary().tokenHitRate(root.hitTokens())));
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  private Table policyTable() {
    List<CachePolicy> shown = policies.stream().map(PolicyHits::policy).distinct().toList();
    List<String> head = new ArrayList<>(List.of("CAPACITY (BLOCKS)"));
    shown.forEach(policy -> head.add(policy.key().toUpperCase(Locale.ROOT)));
    Table table = new Table(head.toArray(String[]::new));
    for (int c = 0; c < capacities.length; c++) {
      List<String> row = new ArrayList<>(List.of(Figures.grouped(capacities[c])));
      for (int p = 0; p < shown.size(); p++) {
        CacheHits hits = policies.get(p * capacities.length + c).hits();
        row.add(Figures.percent(analysis.summary().tokenHitRate(hits.hitTokens())));
      }
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  private void printError(PrintWriter out, LruCurves sampled) {
    out.println();
    Table table = new Table("SAMPLED CURVE", "BLOCKS SAMPLED", "MEAN ERROR", "MAX ERROR", "AT");
    for (TouchOrder order : TouchOrder.values()) {
      CurveError error = error(order, sampled);
      table.row(
          "lru " + order.key(),
          Figures.percent(sampled.of(order).sampleRate()),
          Figures.percent(error.mean()),
          Figures.percent(error.max()),
          Figures.grouped(error.maxAtBlocks()));
    }
    table.print(out);
    out.println();
    out.println(
        "Absolute difference from the exact share of input tokens, at 1% to 100% of the distinct"
            + " blocks.");
  }

  @Override
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("inputs", read.inputs());
    data.put("format", read.format().toString());
    data.put("bad_lines", read.badLines());
    data.put("exact", analysis.exact());
    data.put("summary", analysis.summary());
    if (blockBytes > 0) {
      data.put("block_bytes", blockBytes);
    }
    data.put("knee_blocks", analysis.lru(TouchOrder.LEAF_LAST).kneeCapacity());
    data.put("curve", curveRows());
    if (analysis.exact()) {
      analysis.sampledCurves().ifPresent(sampled -> data.put("sampled", sampledData(sampled)));
    }
    return data;
  }

  /** The curves and policies as rows of a table, one a policy and capacity. */
  @Override
  public List<Map<String, Object>> rows() {
    List<Map<String, Object>> rows = curveRows();
    for (Map<String, Object> row : rows) {
      long blocks = number(row, "capacity_blocks");
      row.put("token_hit_rate", analysis.summary().tokenHitRate(number(row, "hit_tokens")));
      row.put("capacity_tokens", blocks * analysis.summary().blockTokens());
      if (blockBytes > 0) {
        row.put("capacity_bytes", blocks * blockBytes);
      }
    }
    return rows;
  }

  private static long number(Map<String, Object> row, String name) {
    return row.get(name) instanceof Number number ? number.longValue() : 0;
  }

  private List<Map<String, Object>> curveRows() {
    List<Map<String, Object>> rows = new ArrayList<>();
    for (long capacity : capacities) {
      rows.add(row(analysis.lru(TouchOrder.LEAF_LAST), capacity));
      rows.add(row(analysis.lru(TouchOrder.ROOT_LAST), capacity));
    }
    for (PolicyHits simulated : policies) {
      String order =
          switch (simulated.policy()) {
            case PREFIX_LRU, OPTIMAL -> TouchOrder.LEAF_LAST.key();
            default -> policyOrder.key();
          };
      rows.add(row(simulated.policy().key(), order, simulated.hits()));
    }
    return rows;
  }

  private List<Map<String, Object>> sampledData(LruCurves sampled) {
    List<Map<String, Object>> list = new ArrayList<>();
    for (TouchOrder order : TouchOrder.values()) {
      CurveError error = error(order, sampled);
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("touch_order", order.key());
      one.put("sample_rate", sampled.of(order).sampleRate());
      one.put("mean_error", error.mean());
      one.put("max_error", error.max());
      one.put("max_error_at_blocks", error.maxAtBlocks());
      List<Map<String, Object>> rows = new ArrayList<>();
      for (long capacity : capacities) {
        rows.add(row(sampled.of(order), capacity));
      }
      one.put("curve", rows);
      list.add(one);
    }
    return list;
  }

  private CurveError error(TouchOrder order, LruCurves sampled) {
    return CurveError.between(analysis.lru(order), sampled.of(order), analysis.summary());
  }

  private static Map<String, Object> row(LruCurve curve, long capacity) {
    return row("lru", curve.touchOrder().key(), curve.at(capacity));
  }

  private static Map<String, Object> row(String policy, String order, CacheHits hits) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("policy", policy);
    row.put("touch_order", order);
    row.put("capacity_blocks", hits.capacityBlocks());
    row.put("hit_blocks", hits.hitBlocks());
    row.put("hit_tokens", hits.hitTokens());
    return row;
  }

  private String mtokens(long capacity) {
    return Figures.fixed((double) capacity * analysis.summary().blockTokens() / 1e6, 2);
  }

  private static double ratio(long part, long whole) {
    return whole == 0 ? 0 : (double) part / whole;
  }
}
