package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.cli.output.Figures;
import ucm.cli.output.FormattedReport;
import ucm.cli.output.Table;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.insight.HotPrefix;
import ucm.lite.insight.SampledInsights;
import ucm.lite.insight.TraceInsights;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceReadReport;

/** What {@code ucm trace stat} prints, from all blocks or from a sample of them. */
final class StatReport implements FormattedReport {

  private final TraceReadReport read;
  private final TraceAnalysis analysis;
  private final SampleNote note;
  private final Object insights;
  private final Table sessions;
  private final List<HotPrefix> hotPrefixes;

  /** The distributions, by their names in tables and in CSV. */
  private final List<Times> times = new ArrayList<>();

  private record Times(String title, String name, Quantiles seconds) {}

  private StatReport(
      TraceReadReport read,
      TraceAnalysis analysis,
      SampleNote note,
      Object insights,
      long sessions,
      List<HotPrefix> hotPrefixes) {
    this.read = read;
    this.analysis = analysis;
    this.note = note;
    this.insights = insights;
    this.sessions = new Table("SESSIONS", count(sessions));
    this.hotPrefixes = hotPrefixes;
  }

  static StatReport exact(TraceReadReport read, TraceAnalysis analysis, TraceInsights insights) {
    StatReport report =
        new StatReport(
            read,
            analysis,
            new SampleNote(1, 1),
            insights,
            insights.sessions(),
            insights.hotPrefixes());
    report.count("of two requests or more", insights.reusedSessions());
    report.count("requests of the longest", insights.largestSession());
    report.count("requests never used again", insights.requestsNeverReused());
    report.count("blocks never used again", insights.blocksNeverReused());
    report.times("between turns of a session", "session_gap", insights.sessionGaps());
    report.times("between uses of a block", "block_gap", insights.blockGaps());
    report.times("from request to its last reuse", "lifetime", insights.lifetimes());
    report.times("from first to last use of a block", "block_lifetime", insights.blockLifetimes());
    return report;
  }

  static StatReport sampled(
      TraceReadReport read, TraceAnalysis analysis, SampledInsights insights) {
    double curveRate = analysis.lru(TouchOrder.LEAF_LAST).sampleRate();
    StatReport report =
        new StatReport(
            read,
            analysis,
            new SampleNote(insights.sampleRate(), curveRate),
            insights,
            insights.sessions(),
            insights.hotPrefixes());
    report.count("blocks never used again", insights.blocksNeverReused());
    report.times("between turns of a session", "session_gap", insights.sessionGaps());
    report.times("between uses of a block", "block_gap", insights.blockGaps());
    report.times("from first to last use of a block", "block_lifetime", insights.blockLifetimes());
    return report;
  }

  private void count(String title, long value) {
    sessions.row(title, count(value));
  }

  private void times(String title, String name, Quantiles seconds) {
    times.add(new Times(title, name, seconds));
  }

  private String count(long value) {
    return (note.exact() ? "" : "about ") + Figures.grouped(value);
  }

  /** From how many blocks this is. */
  SampleNote note() {
    return note;
  }

  @Override
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("inputs", read.inputs());
    data.put("format", read.format().toString());
    data.put("bad_lines", read.badLines());
    note.addTo(data);
    data.put("summary", analysis.summary());
    data.put("insights", insights);
    return data;
  }

  /** The distributions as rows of one table. */
  @Override
  public List<Map<String, Object>> rows() {
    List<Map<String, Object>> rows = new ArrayList<>();
    for (Times one : times) {
      Map<String, Object> row = new LinkedHashMap<>();
      row.put("seconds", one.name());
      row.put("count", one.seconds().count());
      row.put("mean", one.seconds().mean());
      row.put("p50", one.seconds().p50());
      row.put("p90", one.seconds().p90());
      row.put("p99", one.seconds().p99());
      row.put("max", one.seconds().max());
      row.put("sample_rate", note.simulated());
      rows.add(row);
    }
    return rows;
  }

  @Override
  public void print(PrintWriter out) {
    TraceTotals.table(read, analysis.summary(), analysis.exact()).print(out);
    out.println();
    sessions.print(out);
    out.println();
    Table table = new Table("TIMES, S", "COUNT", "MEAN", "P50", "P90", "P99", "MAX");
    for (Times one : times) {
      table.row(
          one.title(),
          Figures.grouped(one.seconds().count()),
          Figures.fixed(one.seconds().mean(), 1),
          Figures.fixed(one.seconds().p50(), 1),
          Figures.fixed(one.seconds().p90(), 1),
          Figures.fixed(one.seconds().p99(), 1),
          Figures.fixed(one.seconds().max(), 1));
    }
    table.print(out);
    out.println();
    Table hot = new Table("HOT PREFIX (ID OF ITS LAST BLOCK)", "BLOCKS", "TOKENS", "REQUESTS");
    for (HotPrefix prefix : hotPrefixes) {
      hot.row(
          prefix.lastBlockId(),
          Figures.grouped(prefix.blocks()),
          Figures.grouped((long) prefix.blocks() * analysis.summary().blockTokens()),
          Figures.grouped(prefix.requests()));
    }
    hot.print(out);
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
}
