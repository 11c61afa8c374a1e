package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Table;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.insight.HotPrefix;
import ucm.lite.insight.SampledInsights;
import ucm.lite.insight.TraceInsights;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceReadReport;

/**
 * What {@code ucm trace stat} prints, from all blocks or from a sample of them.
 *
 * @param note from how many blocks this is
 * @param insights for JSON
 * @param counts by their titles
 */
record StatReport(
    TraceReadReport read,
    TraceAnalysis analysis,
    SampleNote note,
    Object insights,
    Map<String, Long> counts,
    List<Times> times,
    List<HotPrefix> hotPrefixes)
    implements FormatOptions.Report {

  private static final String SESSIONS = "SESSIONS";

  /** A distribution, by its names in tables and in CSV. */
  private record Times(String title, String name, Quantiles seconds) {}

  static StatReport exact(TraceReadReport read, TraceAnalysis analysis, TraceInsights insights) {
    Map<String, Long> counts = new LinkedHashMap<>();
    counts.put(SESSIONS, insights.sessions());
    counts.put("of two requests or more", insights.reusedSessions());
    counts.put("requests of the longest", insights.largestSession());
    counts.put("requests never used again", insights.requestsNeverReused());
    counts.put("blocks never used again", insights.blocksNeverReused());
    return new StatReport(
        read,
        analysis,
        new SampleNote(1, 1),
        insights,
        counts,
        List.of(
            betweenTurns(insights.sessionGaps()),
            betweenUses(insights.blockGaps()),
            new Times("from request to its last reuse", "lifetime", insights.lifetimes()),
            ofBlocks(insights.blockLifetimes())),
        insights.hotPrefixes());
  }

  static StatReport sampled(
      TraceReadReport read, TraceAnalysis analysis, SampledInsights insights) {
    double curveRate = analysis.lru(TouchOrder.LEAF_LAST).sampleRate();
    Map<String, Long> counts = new LinkedHashMap<>();
    counts.put(SESSIONS, insights.sessions());
    counts.put("blocks never used again", insights.blocksNeverReused());
    return new StatReport(
        read,
        analysis,
        new SampleNote(insights.sampleRate(), curveRate),
        insights,
        counts,
        List.of(
            betweenTurns(insights.sessionGaps()),
            betweenUses(insights.blockGaps()),
            ofBlocks(insights.blockLifetimes())),
        insights.hotPrefixes());
  }

  private static Times betweenTurns(Quantiles seconds) {
    return new Times("between turns of a session", "session_gap", seconds);
  }

  private static Times betweenUses(Quantiles seconds) {
    return new Times("between uses of a block", "block_gap", seconds);
  }

  private static Times ofBlocks(Quantiles seconds) {
    return new Times("from first to last use of a block", "block_lifetime", seconds);
  }

  private Columns<Times> columns() {
    return new Columns<Times>()
        .text("TIMES, S", Times::title)
        .data("seconds", Times::name)
        .both("COUNT", "count", one -> one.seconds.count(), Figures::grouped)
        .both("MEAN", "mean", one -> one.seconds.mean(), StatReport::seconds)
        .both("P50", "p50", one -> one.seconds.p50(), StatReport::seconds)
        .both("P90", "p90", one -> one.seconds.p90(), StatReport::seconds)
        .both("P99", "p99", one -> one.seconds.p99(), StatReport::seconds)
        .both("MAX", "max", one -> one.seconds.max(), StatReport::seconds)
        .data("sample_rate", _ -> note.simulated());
  }

  private static String seconds(double value) {
    return Figures.fixed(value, 1);
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
    return note.addTo(AnalyzeReport.inputs(read))
        .with("summary", analysis.summary())
        .with("insights", insights);
  }

  /** The distributions as rows of one table. */
  @Override
  public List<Fields> rows() {
    return columns().data(times);
  }

  @Override
  public void print(PrintWriter out) {
    AnalyzeReport.totals(read, analysis).print(out);
    out.println();
    sessions().print(out);
    out.println();
    columns().table(times).print(out);
    out.println();
    hot().table(hotPrefixes).print(out);
    if (!note.exact()) {
      out.println();
      out.println(
          note.text("sessions, times and hot prefixes", "unique blocks and ideal hit rate"));
      out.println(
          "A sample of blocks does not tell the lengths of sessions or the use of whole requests,"
              + " and of hot prefixes only those that end with one of its blocks.");
      out.flush();
    }
  }

  private Table sessions() {
    String about = note.exact() ? "" : "about ";
    Map<String, String> shown = new LinkedHashMap<>();
    counts.forEach((title, count) -> shown.put(title, about + Figures.grouped(count)));
    Table table = new Table(SESSIONS, String.valueOf(shown.remove(SESSIONS)));
    shown.forEach(table::row);
    return table;
  }
}
