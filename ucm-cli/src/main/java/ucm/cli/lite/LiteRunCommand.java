package ucm.cli.lite;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PipelineOptions;
import ucm.cli.trace.TraceInputOptions;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.TraceOptions;

/** {@code ucm lite run}: what an engine in lite mode would have logged for a trace. */
@Command(
    name = "run",
    description = {
      "Asks the connector in lite mode about each request of a trace: the log is that of an engine"
          + " with use_lite: true that got these requests one after the other with nothing on the"
          + " device, and then comes what lite status would say of it.",
      "use_lite counts as true whatever the file says; nothing of its pipeline is opened unless"
          + " that is Fake, and no trace is written."
    })
final class LiteRunCommand extends JsonCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private PipelineOptions pipeline = new PipelineOptions();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "stop after this many requests (default: all)")
  private long limit = Long.MAX_VALUE;

  @Override
  public void run() {
    UsageException.atLeast("--requests", limit, 1);
    UcmConfig lite =
        pipeline
            .read()
            .withTopLevel(Map.of("use_lite", true, "enable_record_traces", false), "lite run");
    PrintWriter err = err();
    LogSetup.keepAllLines();
    try (Cleanup cleanup = new Cleanup()) {
      Path folder = cleanup.folder(Path.of(System.getProperty("java.io.tmpdir")), "ucm-lite-run-");
      LiteRun run =
          cleanup.add(
              new LiteRun(
                  lite,
                  pipeline.catalog(),
                  metrics.open(lite, cleanup, err),
                  new TraceOptions(folder, 1, 1),
                  limit));
      inputs.read("requests", err, run);
      run.close();
      UsageException.when(run.requests() == 0, "the trace has no request");
      ObjectNode engine = LiteStatusCommand.read(LiteStatusCommand.files(folder).getFirst());
      print(() -> List.of(engine), () -> LiteStatusCommand.print(out(), engine));
    }
  }
}
