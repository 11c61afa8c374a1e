package ucm.cli.trace;

import ucm.cli.output.Figures;
import ucm.cli.output.Table;
import ucm.lite.curve.TraceSummary;
import ucm.lite.trace.TraceReadReport;

/** The first table of commands that read a trace: what is in it. */
final class TraceTotals {

  private TraceTotals() {}

  static Table table(TraceReadReport read, TraceSummary summary, boolean exact) {
    String about = exact ? "" : "about ";
    Table totals = new Table("TRACE", String.join(" ", read.inputs()));
    totals.row("format", read.format().toString());
    totals.row("requests", Figures.grouped(summary.requests()));
    totals.row("time span", Figures.fixed(summary.timeSpanMillis() / 1e3, 1) + " s");
    totals.row("input tokens", tokens(summary.inputTokens(), summary.meanInputTokens()));
    totals.row("output tokens", tokens(summary.outputTokens(), summary.meanOutputTokens()));
    totals.row(
        "blocks",
        Figures.grouped(summary.blockReferences()) + " of " + summary.blockTokens() + " tokens");
    totals.row("unique blocks", about + Figures.grouped(summary.uniqueBlocks()));
    totals.row(
        "ideal hit rate",
        about
            + Figures.percent(summary.idealTokenHitRate())
            + " of tokens ("
            + Figures.grouped(summary.idealHitTokens())
            + "), "
            + Figures.percent(summary.idealBlockHitRate())
            + " of blocks ("
            + Figures.grouped(summary.idealHitBlocks())
            + ")");
    return totals;
  }

  private static String tokens(long all, double mean) {
    return Figures.grouped(all) + " (mean " + Figures.grouped(Math.round(mean)) + ")";
  }
}
