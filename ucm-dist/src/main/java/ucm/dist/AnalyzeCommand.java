package ucm.dist;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import ucm.lite.CacheHits;
import ucm.lite.LruCurve;
import ucm.lite.TraceAnalysis;
import ucm.lite.TraceAnalyzer;
import ucm.lite.TraceReadReport;
import ucm.lite.TraceSummary;

/** {@code ucm trace analyze}: the exact hit rate of caches of every size on a trace. */
@Command(
    name = "analyze",
    description = {
      "Prints what a trace holds and the exact hit rate of an LRU cache at several capacities.",
      "A hit is a block of the unbroken run from the prompt's first block that is in the cache when"
          + " the request arrives; all blocks of the request are touched afterwards."
    })
final class AnalyzeCommand implements Runnable {

  private static final long[] BLOCKS = {1, 100, 1000, 10_000, 30_000, 50_000, 100_000, 150_000};
  private static final long[] TOKENS = {3_000_000, 50_000_000};
  private static final int[] PERCENT = {1, 5, 10, 25, 50, 100};

  @Spec private CommandSpec spec;
  @Mixin private TraceInputOptions inputs = new TraceInputOptions();

  @Option(
      names = "--capacity",
      split = ",",
      paramLabel = "BLOCKS",
      description =
          "capacities in blocks (default: 1 to 150,000; 3 and 50 million tokens; 1%% to 100%% of"
              + " the unique blocks)")
  private List<Long> capacities = List.of();

  @Option(
      names = "--fifo",
      description = "simulate FIFO eviction at these capacities, too; reads the trace twice")
  private boolean fifo;

  @Option(names = "--json", description = "print JSON instead of tables")
  private boolean json;

  @Override
  public void run() {
    if (fifo && !inputs.repeatable()) {
      throw new UsageException("--fifo reads the trace twice, which standard input does not allow");
    }
    if (capacities.stream().anyMatch(capacity -> capacity < 0)) {
      throw new UsageException("--capacity is a number of blocks, 0 or more; found " + capacities);
    }
    PrintWriter err = spec.commandLine().getErr();
    TraceAnalyzer analyzer = new TraceAnalyzer();
    TraceReadReport read = inputs.read("requests", err, analyzer);
    TraceAnalysis analysis = analyzer.finish();
    long[] chosen = chosenCapacities(analysis.summary());
    List<CacheHits> fifoHits = List.of();
    if (fifo) {
      TraceAnalyzer second = new TraceAnalyzer(chosen);
      inputs.read("requests, for FIFO", err, second);
      fifoHits = second.finish().fifo();
    }
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      Json.print(out, data(read, analysis, chosen, fifoHits));
    } else {
      print(out, read, analysis, chosen, fifoHits);
    }
  }

  private long[] chosenCapacities(TraceSummary summary) {
    TreeSet<Long> chosen = new TreeSet<>(capacities);
    if (chosen.isEmpty()) {
      for (long blocks : BLOCKS) {
        chosen.add(blocks);
      }
      for (long tokens : TOKENS) {
        chosen.add(tokens / Math.max(1, summary.blockTokens()));
      }
      for (int percent : PERCENT) {
        chosen.add(Math.round(summary.uniqueBlocks() * percent / 100.0));
      }
      // More than everything hits no more than everything.
      chosen.removeIf(blocks -> blocks > summary.uniqueBlocks() || blocks == 0);
    }
    return chosen.stream().mapToLong(Long::longValue).toArray();
  }

  private static void print(
      PrintWriter out,
      TraceReadReport read,
      TraceAnalysis analysis,
      long[] chosen,
      List<CacheHits> fifoHits) {
    TraceSummary summary = analysis.summary();
    Table totals = new Table("TRACE", String.join(" ", read.inputs()));
    totals.row("format", read.format().toString());
    totals.row("requests", grouped(summary.requests()));
    totals.row("time span", String.format(Locale.ROOT, "%.1f s", summary.timeSpanMillis() / 1e3));
    totals.row(
        "input tokens",
        grouped(summary.inputTokens())
            + " (mean "
            + grouped(Math.round(summary.meanInputTokens()))
            + ")");
    totals.row(
        "output tokens",
        grouped(summary.outputTokens())
            + " (mean "
            + grouped(Math.round(summary.meanOutputTokens()))
            + ")");
    totals.row(
        "blocks", grouped(summary.blockReferences()) + " of " + summary.blockTokens() + " tokens");
    totals.row("unique blocks", grouped(summary.uniqueBlocks()));
    totals.row(
        "ideal hit rate",
        percent(summary.idealTokenHitRate())
            + " of tokens ("
            + grouped(summary.idealHitTokens())
            + "), "
            + percent(summary.idealBlockHitRate())
            + " of blocks ("
            + grouped(summary.idealHitBlocks())
            + ")");
    totals.print(out);
    out.println();
    curve(analysis, chosen, fifoHits).print(out);
    out.println();
    out.println(
        "Share of input tokens; \"root last\" touches a prompt's blocks last to first, so that"
            + " leaves are evicted first.");
  }

  private static Table curve(TraceAnalysis analysis, long[] chosen, List<CacheHits> fifoHits) {
    TraceSummary summary = analysis.summary();
    boolean withFifo = !fifoHits.isEmpty();
    List<String> head =
        new ArrayList<>(
            List.of(
                "CAPACITY (BLOCKS)",
                "LRU HIT TOKENS",
                "LRU",
                "OF IDEAL",
                "LRU ROOT LAST, TOKENS",
                "LRU ROOT LAST"));
    if (withFifo) {
      head.addAll(List.of("FIFO HIT TOKENS", "FIFO"));
    }
    Table table = new Table(head.toArray(String[]::new));
    for (int i = 0; i < chosen.length; i++) {
      CacheHits leaf = analysis.leafLast().at(chosen[i]);
      CacheHits root = analysis.rootLast().at(chosen[i]);
      List<String> row =
          new ArrayList<>(
              List.of(
                  grouped(chosen[i]),
                  grouped(leaf.hitTokens()),
                  percent(summary.tokenHitRate(leaf.hitTokens())),
                  percent(ratio(leaf.hitTokens(), summary.idealHitTokens())),
                  grouped(root.hitTokens()),
                  percent(summary.tokenHitRate(root.hitTokens()))));
      if (withFifo) {
        long tokens = fifoHits.get(i).hitTokens();
        row.addAll(List.of(grouped(tokens), percent(summary.tokenHitRate(tokens))));
      }
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  private static Map<String, Object> data(
      TraceReadReport read, TraceAnalysis analysis, long[] chosen, List<CacheHits> fifoHits) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("inputs", read.inputs());
    data.put("format", read.format().toString());
    data.put("bad_lines", read.badLines());
    data.put("summary", analysis.summary());
    List<Map<String, Object>> rows = new ArrayList<>();
    for (int i = 0; i < chosen.length; i++) {
      rows.add(row(analysis.leafLast(), chosen[i]));
      rows.add(row(analysis.rootLast(), chosen[i]));
      if (!fifoHits.isEmpty()) {
        rows.add(row("fifo", "leaf_last", fifoHits.get(i)));
      }
    }
    data.put("curve", rows);
    return data;
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

  private static double ratio(long part, long whole) {
    return whole == 0 ? 0 : (double) part / whole;
  }

  private static String grouped(long number) {
    return String.format(Locale.ROOT, "%,d", number);
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.2f%%", 100 * share);
  }
}
