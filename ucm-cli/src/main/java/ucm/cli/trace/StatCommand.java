package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.output.CliCommand;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Table;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.insight.TraceInsights;
import ucm.lite.insight.TraceInsights.HotPrefix;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceReadReport;

/** {@code ucm trace stat}: sessions, reuse in time, and hot prefixes of a trace. */
@Command(
    name = "stat",
    description = {
      "Prints what a trace holds: sessions and the gaps between their turns, how long prompts stay"
          + " useful, and the prefixes that save most.",
      "Sessions are found from the blocks: a prompt that goes on where an earlier one ended belongs"
          + " to its session.",
      "",
      "Memory is bounded: of a trace with more distinct blocks than half of the heap has room for,"
          + " the totals are estimated from a sample of its blocks, and the output says so."
          + " Sessions, times and hot prefixes need the whole trace."
    })
public final class StatCommand extends CliCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private SampleOptions sample = new SampleOptions();
  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() throws InterruptedException {
    format.check();
    AnalysisOptions options = sample.analysis();
    TraceAnalyzer analyzer = new TraceAnalyzer(options.exact() ? options.withRecording() : options);
    TraceReadReport read = inputs.read(analyzer);
    TraceAnalysis analysis = analyzer.finish();
    double rate = analysis.lru(TouchOrder.LEAF_LAST).sampleRate();
    sample.warn(err(), rate);
    TraceInsights insights = null;
    if (analysis.exact()) {
      try (RecordedTrace trace = analyzer.recorded()) {
        insights = TraceInsights.of(trace);
      }
    }
    format.print(out(), new Report(read, analysis, new SampleNote(1, rate), insights));
  }

  private static String seconds(double value) {
    return Figures.fixed(value, 1);
  }

  /** A distribution, by its names in tables and in CSV. */
  private record Times(String title, String name, Quantiles seconds) {}

  /** What is printed; of a sample the totals alone. */
  private record Report(
      TraceReadReport read,
      TraceAnalysis analysis,
      SampleNote note,
      @Nullable TraceInsights insights)
      implements FormatOptions.Report {

    private static Table sessions(TraceInsights of) {
      Table table = new Table("SESSIONS", Figures.grouped(of.sessions()));
      table.row("of two requests or more", Figures.grouped(of.reusedSessions()));
      table.row("requests of the longest", Figures.grouped(of.largestSession()));
      table.row("requests never used again", Figures.grouped(of.requestsNeverReused()));
      table.row("blocks never used again", Figures.grouped(of.blocksNeverReused()));
      return table;
    }

    private static List<Times> times(TraceInsights of) {
      return List.of(
          new Times("between turns of a session", "session_gap", of.sessionGaps()),
          new Times("between uses of a block", "block_gap", of.blockGaps()),
          new Times("from request to its last reuse", "lifetime", of.lifetimes()),
          new Times("from first to last use of a block", "block_lifetime", of.blockLifetimes()));
    }

    private Columns<Times> columns() {
      return new Columns<Times>()
          .text("TIMES, S", Times::title)
          .data("seconds", Times::name)
          .both("COUNT", "count", one -> one.seconds.count(), Figures::grouped)
          .both("MEAN", "mean", one -> one.seconds.mean(), StatCommand::seconds)
          .both("P50", "p50", one -> one.seconds.p50(), StatCommand::seconds)
          .both("P90", "p90", one -> one.seconds.p90(), StatCommand::seconds)
          .both("P99", "p99", one -> one.seconds.p99(), StatCommand::seconds)
          .both("MAX", "max", one -> one.seconds.max(), StatCommand::seconds);
    }

    private Columns<HotPrefix> hot() {
      long blockTokens = analysis.summary().blockTokens();
      return new Columns<HotPrefix>()
          .text("HOT PREFIX (ID OF ITS LAST BLOCK)", HotPrefix::lastBlockId)
          .text("BLOCKS", prefix -> Figures.grouped(prefix.blocks()))
          .text("TOKENS", prefix -> Figures.grouped(prefix.blocks() * blockTokens))
          .text("REQUESTS", prefix -> Figures.grouped(prefix.requests()));
    }

    @Override
    public Fields data() {
      Fields data = note.addTo(AnalyzeReport.inputs(read)).with("summary", analysis.summary());
      return insights == null ? data : data.with("insights", insights);
    }

    /** The distributions as rows of one table. */
    @Override
    public List<Fields> rows() {
      return insights == null ? List.of() : columns().data(times(insights));
    }

    @Override
    public void print(PrintWriter out) {
      AnalyzeReport.totals(read, analysis).printSection(out);
      if (insights == null) {
        out.println(note.text("", "unique blocks and ideal hit rate"));
        out.println("Sessions, times and hot prefixes need the whole trace: leave --sample out.");
        out.flush();
      } else {
        sessions(insights).printSection(out);
        columns().table(times(insights)).printSection(out);
        hot().table(insights.hotPrefixes()).print(out);
      }
    }
  }
}
