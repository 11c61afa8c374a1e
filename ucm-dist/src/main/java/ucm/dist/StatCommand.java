package ucm.dist;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;
import ucm.lite.AnalysisOptions;
import ucm.lite.HotPrefix;
import ucm.lite.Quantiles;
import ucm.lite.RecordedTrace;
import ucm.lite.TraceAnalysis;
import ucm.lite.TraceAnalyzer;
import ucm.lite.TraceException;
import ucm.lite.TraceInsights;
import ucm.lite.TraceReadReport;

/** {@code ucm trace stat}: sessions, reuse in time, and hot prefixes of a trace. */
@Command(
    name = "stat",
    description = {
      "Prints what a trace holds: sessions and the gaps between their turns, how long prompts stay"
          + " useful, and the prefixes that save most.",
      "Sessions are found from the blocks: a prompt that goes on where an earlier one ended belongs"
          + " to its session."
    })
final class StatCommand implements Runnable {

  @Spec private CommandSpec spec;
  @Mixin private TraceInputOptions inputs = new TraceInputOptions();

  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() {
    boolean json = format.json();
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT.withRecording());
    TraceReadReport read = inputs.read("requests", spec.commandLine().getErr(), analyzer);
    TraceAnalysis analysis = analyzer.finish();
    try (RecordedTrace trace = analyzer.recorded()) {
      TraceInsights insights = TraceInsights.of(trace);
      PrintWriter out = spec.commandLine().getOut();
      if (json) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("inputs", read.inputs());
        data.put("format", read.format().toString());
        data.put("bad_lines", read.badLines());
        data.put("summary", analysis.summary());
        data.put("insights", insights);
        Json.print(out, data);
      } else if (format.csv()) {
        Csv.print(out, rows(insights));
      } else {
        TraceTotals.table(read, analysis.summary(), analysis.exact()).print(out);
        print(out, insights, analysis);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new TraceException("the work was interrupted", e);
    }
  }

  /** The three distributions as rows of one table. */
  private static List<Map<String, Object>> rows(TraceInsights insights) {
    return List.of(
        row("session_gap", insights.sessionGaps()),
        row("block_gap", insights.blockGaps()),
        row("lifetime", insights.lifetimes()));
  }

  private static Map<String, Object> row(String name, Quantiles times) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("seconds", name);
    row.put("count", times.count());
    row.put("mean", times.mean());
    row.put("p50", times.p50());
    row.put("p90", times.p90());
    row.put("p99", times.p99());
    row.put("max", times.max());
    return row;
  }

  private static void print(PrintWriter out, TraceInsights insights, TraceAnalysis analysis) {
    out.println();
    Table sessions = new Table("SESSIONS", Figures.grouped(insights.sessions()));
    sessions.row("of two requests or more", Figures.grouped(insights.reusedSessions()));
    sessions.row("requests of the longest", Figures.grouped(insights.largestSession()));
    sessions.row("requests never used again", Figures.grouped(insights.requestsNeverReused()));
    sessions.print(out);
    out.println();
    Table times = new Table("TIMES, S", "COUNT", "MEAN", "P50", "P90", "P99", "MAX");
    row(times, "between turns of a session", insights.sessionGaps());
    row(times, "between uses of a block", insights.blockGaps());
    row(times, "from request to its last reuse", insights.lifetimes());
    times.print(out);
    out.println();
    Table hot = new Table("HOT PREFIX (ID OF ITS LAST BLOCK)", "BLOCKS", "TOKENS", "REQUESTS");
    for (HotPrefix prefix : insights.hotPrefixes()) {
      hot.row(
          prefix.lastBlockId(),
          Figures.grouped(prefix.blocks()),
          Figures.grouped((long) prefix.blocks() * analysis.summary().blockTokens()),
          Figures.grouped(prefix.requests()));
    }
    hot.print(out);
  }

  private static void row(Table table, String name, Quantiles times) {
    table.row(
        name,
        Figures.grouped(times.count()),
        Figures.fixed(times.mean(), 1),
        Figures.fixed(times.p50(), 1),
        Figures.fixed(times.p90(), 1),
        Figures.fixed(times.p99(), 1),
        Figures.fixed(times.max(), 1));
  }
}
