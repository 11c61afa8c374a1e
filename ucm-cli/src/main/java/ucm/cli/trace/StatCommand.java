package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
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
import ucm.lite.insight.HotPrefix;
import ucm.lite.insight.Insights;
import ucm.lite.insight.InsightsSampler;
import ucm.lite.insight.TraceInsights;
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
      "Memory is bounded: a trace with more distinct blocks than half of the heap has room for is"
          + " estimated from a sample of its blocks, and the output says so. Such a sample does not"
          + " tell how long sessions and requests are used, but how long blocks are."
    })
public final class StatCommand extends CliCommand {

  /** The most blocks of the sample, some 50 MB, in an eighth of the heap at most. */
  private static final int SAMPLED_BLOCKS = 1 << 18;

  private static final int HEAP_PARTS = 8;

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private SampleOptions sample = new SampleOptions();
  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() throws InterruptedException {
    format.check();
    AnalysisOptions options = sample.analysis();
    TraceAnalyzer analyzer = new TraceAnalyzer(options.exact() ? options.withRecording() : options);
    long bound = SampleOptions.blocksIn(HEAP_PARTS, InsightsSampler.BYTES_A_BLOCK);
    InsightsSampler sampler = new InsightsSampler(sample.bounded(Math.min(bound, SAMPLED_BLOCKS)));
    TraceReadReport read = inputs.read(analyzer.andThen(sampler));
    TraceAnalysis analysis = analyzer.finish();
    Insights insights = analysis.exact() ? exact(analyzer) : sampler.result();
    sample.warn(err(), insights.sampleRate());
    format.print(out(), new Report(read, analysis, insights));
  }

  private static TraceInsights exact(TraceAnalyzer analyzer) throws InterruptedException {
    try (RecordedTrace trace = analyzer.recorded()) {
      return TraceInsights.of(trace);
    }
  }

  private static String seconds(double value) {
    return Figures.fixed(value, 1);
  }

  /** A distribution, by its names in tables and in CSV. */
  private record Times(String title, String name, Quantiles seconds) {}

  /** What is printed; a sample of blocks does not tell all that the whole trace does. */
  private record Report(TraceReadReport read, TraceAnalysis analysis, Insights insights)
      implements FormatOptions.Report {

    private SampleNote note() {
      return new SampleNote(insights.sampleRate(), analysis.lru(TouchOrder.LEAF_LAST).sampleRate());
    }

    private Table sessions() {
      String about = note().exact() ? "" : "about ";
      Table table = new Table("SESSIONS", about + Figures.grouped(insights.sessions()));
      if (insights instanceof TraceInsights all) {
        table.row("of two requests or more", Figures.grouped(all.reusedSessions()));
        table.row("requests of the longest", Figures.grouped(all.largestSession()));
        table.row("requests never used again", Figures.grouped(all.requestsNeverReused()));
      }
      table.row("blocks never used again", about + Figures.grouped(insights.blocksNeverReused()));
      return table;
    }

    private List<Times> times() {
      List<Times> times = new ArrayList<>();
      times.add(new Times("between turns of a session", "session_gap", insights.sessionGaps()));
      times.add(new Times("between uses of a block", "block_gap", insights.blockGaps()));
      if (insights instanceof TraceInsights all) {
        times.add(new Times("from request to its last reuse", "lifetime", all.lifetimes()));
      }
      Quantiles lifetimes = insights.blockLifetimes();
      times.add(new Times("from first to last use of a block", "block_lifetime", lifetimes));
      return times;
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
          .both("MAX", "max", one -> one.seconds.max(), StatCommand::seconds)
          .data("sample_rate", _ -> insights.sampleRate());
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
      return note()
          .addTo(AnalyzeReport.inputs(read))
          .with("summary", analysis.summary())
          .with("insights", insights);
    }

    /** The distributions as rows of one table. */
    @Override
    public List<Fields> rows() {
      return columns().data(times());
    }

    @Override
    public void print(PrintWriter out) {
      AnalyzeReport.totals(read, analysis).printSection(out);
      sessions().printSection(out);
      columns().table(times()).printSection(out);
      hot().table(insights.hotPrefixes()).print(out);
      if (!note().exact()) {
        out.println();
        out.println(
            note().text("sessions, times and hot prefixes", "unique blocks and ideal hit rate"));
        out.println(
            "A sample of blocks does not tell the lengths of sessions or the use of whole requests,"
                + " and of hot prefixes only those that end with one of its blocks.");
        out.flush();
      }
    }
  }
}
