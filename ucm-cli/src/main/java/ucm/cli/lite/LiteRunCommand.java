package ucm.cli.lite;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tools.jackson.databind.node.ObjectNode;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.trace.FileFault;
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
  @Mixin private PluginsOption plugins = new PluginsOption();
  @Mixin private MetricsOptions metrics = new MetricsOptions();

  @Option(
      names = "--config",
      required = true,
      paramLabel = "FILE",
      description = "the YAML file of the engine")
  private Path config = Path.of("");

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "stop after this many requests (default: all)")
  private long limit = Long.MAX_VALUE;

  @Override
  public void run() {
    UsageException.atLeast("--requests", limit, 1);
    UcmConfig lite =
        UcmConfig.read(config)
            .withTopLevel(Map.of("use_lite", true, "enable_record_traces", false), "lite run");
    PrintWriter err = err();
    LogSetup.keepAllLines();
    try (Cleanup cleanup = new Cleanup()) {
      Path folder = cleanup.folder(Path.of(System.getProperty("java.io.tmpdir")), "ucm-lite-run-");
      LiteRun run =
          cleanup.add(
              new LiteRun(
                  lite,
                  plugins.catalog(),
                  metrics.open(lite, cleanup, err),
                  new TraceOptions(folder, 1, 1),
                  limit));
      inputs.read("requests", err, run);
      run.close();
      UsageException.when(run.requests() == 0, "the trace has no request");
      print(LiteStatusCommand.read(onlyFile(folder.resolve("lite"))));
    }
  }

  private static Path onlyFile(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList().getFirst();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot list " + folder + ": " + FileFault.of(e), e);
    }
  }

  private void print(ObjectNode engine) {
    PrintWriter out = out();
    if (json) {
      Json.print(out, List.of(engine));
    } else {
      LiteStatusCommand.print(out, engine);
    }
  }
}
