package ucm.cli.trace;

import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.insight.InsightsSampler;
import ucm.lite.insight.TraceInsights;
import ucm.lite.record.RecordedTrace;
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
    PrintWriter err = err();
    TraceReadReport read = inputs.read("requests", err, analyzer.andThen(sampler));
    StatReport report = report(read, analyzer, sampler);
    sample.warn(err, report.note().simulated());
    format.print(out(), report);
  }

  private static StatReport report(
      TraceReadReport read, TraceAnalyzer analyzer, InsightsSampler sampler)
      throws InterruptedException {
    TraceAnalysis analysis = analyzer.finish();
    if (!analysis.exact()) {
      return StatReport.sampled(read, analysis, sampler.result());
    }
    try (RecordedTrace trace = analyzer.recorded()) {
      return StatReport.exact(read, analysis, TraceInsights.of(trace));
    }
  }
}
