package ucm.cli.runtime;

import java.nio.file.Path;
import picocli.CommandLine.Option;
import ucm.pipeline.config.UcmConfig;

/** Whose pipeline a command opens, and where its stores are looked for. */
public final class PipelineOptions extends PluginsOption {

  @Option(
      names = "--config",
      required = true,
      paramLabel = "FILE",
      description = "the YAML file that names the pipeline")
  private Path config = Path.of("");

  public UcmConfig read() {
    return UcmConfig.read(config);
  }
}
