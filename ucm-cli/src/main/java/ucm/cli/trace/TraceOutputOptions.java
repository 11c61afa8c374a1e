package ucm.cli.trace;

import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Spec.Target;
import ucm.cli.output.Figures;
import ucm.cli.output.OutputFile;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.lite.trace.TraceFormat;
import ucm.lite.trace.TraceVisitor;
import ucm.lite.trace.TraceWriter;

/** Where a command writes a trace, and in which format. */
public final class TraceOutputOptions {

  @Spec(Target.MIXEE)
  private CommandSpec command;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description =
          "file to write, compressed when its name ends in .gz; it appears when it is complete"
              + OutputFile.REPLACES
              + " (default: standard output)")
  private @Nullable Path file;

  @Option(
      names = "--to",
      paramLabel = "FORMAT",
      description = "mooncake, bailian or ucm (default: mooncake)")
  private String to = "mooncake";

  /** Runs something that writes requests, and reports how many. */
  public void write(Consumer<TraceVisitor> source) {
    TraceFormat format = format();
    CommandLine line = command.commandLine();
    try (Cleanup cleanup = new Cleanup()) {
      OutputFile output = cleanup.add(new OutputFile(file, line.getOut()));
      TraceWriter writer = new TraceWriter(format, output.writer());
      source.accept(writer);
      output.complete();
      if (file != null) {
        line.getErr()
            .println("ucm: wrote " + Figures.grouped(writer.written()) + " requests to " + file);
      }
    }
  }

  public TraceFormat format() {
    return switch (to.toLowerCase(Locale.ROOT)) {
      case "mooncake" -> TraceFormat.MOONCAKE;
      case "bailian", "qwen-bailian" -> TraceFormat.QWEN_BAILIAN;
      case "ucm" -> TraceFormat.UCM;
      default -> throw new UsageException("--to is mooncake, bailian or ucm; found " + to);
    };
  }
}
