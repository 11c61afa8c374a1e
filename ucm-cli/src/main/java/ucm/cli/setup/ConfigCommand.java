package ucm.cli.setup;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.OutputFile;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.config.ConfigDocs;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.EffectiveConfig;
import ucm.pipeline.config.UcmConfig;

/** {@code ucm config}: checks, shows, documents and converts configurations. */
@Command(
    name = "config",
    description = "Checks, shows and converts configuration files.",
    subcommands = ConfigConvertCommand.class)
public final class ConfigCommand extends CliCommand {
  @Command(
      name = "check",
      description =
          "Reports everything that is wrong with a file; exit code 2 when it cannot be used.")
  int check(
      @Parameters(paramLabel = "FILE", description = "the YAML file") Path file,
      @Option(names = "--json", description = "print JSON instead of text") boolean json,
      @Mixin PluginsOption plugins) {
    ConfigReport report;
    try {
      report = MetricsOptions.check(UcmConfig.read(file), plugins.catalog());
    } catch (ConfigException e) {
      report = e.report();
    }
    if (json) {
      FormatOptions.json(out(), report.data());
    } else {
      say(report.text());
    }
    return report.hasErrors() ? 2 : 0;
  }

  @Command(
      name = "show",
      description = "Prints every key of the file's pipeline: its value, and where that came from.")
  int show(
      @Parameters(paramLabel = "FILE", description = "the YAML file") Path file,
      @Option(names = "--json", description = "print JSON instead of a table") boolean json,
      @Mixin PluginsOption plugins) {
    EffectiveConfig effective = UcmConfig.read(file).effective(plugins.catalog());
    if (json) {
      FormatOptions.json(out(), effective.data());
    } else {
      say(effective.text().stripTrailing());
    }
    return 0;
  }

  @Command(name = "docs", description = "Prints the reference page of all keys, as Markdown.")
  int docs(
      @Option(
              names = "--output",
              paramLabel = "FILE",
              description = "write the page to this file instead" + OutputFile.REPLACES)
          @Nullable Path output,
      @Mixin PluginsOption plugins) {
    OutputFile.write(output, ConfigDocs.markdown(plugins.catalog()), out());
    return 0;
  }
}
