package ucm.cli.trace;

import java.io.PrintWriter;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Spec.Target;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.lite.trace.TraceProblem;
import ucm.lite.trace.TraceReadReport;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;

/** Which traces a command reads, and how patient it is with them. */
public final class TraceInputOptions {

  @Spec(Target.MIXEE)
  private CommandSpec command;

  @Parameters(
      arity = "1..*",
      paramLabel = "FILE",
      description =
          "traces: plain or .gz files, folders, or - for standard input; Mooncake, Qwen-Bailian and"
              + " UCM traces are told apart by their content")
  private List<String> inputs = List.of();

  @Option(
      names = "--max-bad-lines",
      paramLabel = "N",
      description = "bad lines to skip before giving up (default: ${DEFAULT-VALUE})")
  private int maxBadLines = 100;

  @Option(
      names = "--block-tokens",
      paramLabel = "N",
      description = "tokens a block (default: what the trace says)")
  private int blockTokens = 0;

  /** Reads everything, showing progress, and reports the bad lines. */
  public TraceReadReport read(TraceVisitor visitor) {
    TraceReader reader = reader();
    TraceReadReport report;
    try (Progress progress = new Progress("requests", 0)) {
      report = reader.read(inputs, new Watched(visitor, progress));
    }
    PrintWriter err = command.commandLine().getErr();
    for (TraceProblem problem : report.problems()) {
      err.println("ucm: " + problem);
    }
    if (report.badLines() > 0) {
      err.println("ucm: skipped " + report.badLines() + " bad line(s)");
    }
    return report;
  }

  /**
   * Reads up to the first request, and forgets it: what cannot be read is told before a command
   * begins what takes long. Standard input, which can be read only once, is left alone.
   */
  public void check() {
    for (String input : inputs) {
      if (!input.equals("-")) {
        try {
          reader()
              .read(
                  List.of(input),
                  request -> {
                    throw new FirstRequest();
                  });
        } catch (FirstRequest _) {
          // This is one that can be read.
        }
      }
    }
  }

  private TraceReader reader() {
    return UsageException.accepted(
        () -> new TraceReader(maxBadLines, TraceReader.MAX_LINE_BYTES, blockTokens, System.in));
  }

  /** Ends a reading. */
  private static final class FirstRequest extends RuntimeException {
    private static final long serialVersionUID = 1L;

    FirstRequest() {
      super(null, null, false, false);
    }
  }

  /** Shows how far the reader is. */
  static final class Watched implements TraceVisitor {

    private final TraceVisitor visitor;
    private final Progress progress;
    private double share = -1;
    private long requests;

    Watched(TraceVisitor visitor, Progress progress) {
      this.visitor = visitor;
      this.progress = progress;
    }

    @Override
    public void progress(long bytesRead, long bytesTotal) {
      share = bytesTotal <= 0 ? -1 : Math.min(1, (double) bytesRead / bytesTotal);
    }

    /** The share of all bytes that was read, or less than 0 when it is not known. */
    double share() {
      return share;
    }

    @Override
    public void request(TraceRequest request) {
      visitor.request(request);
      progress.at(++requests, share);
    }
  }
}
