package ucm.cli.setup;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.OutputFile;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.lite.trace.FileFault;
import ucm.pipeline.config.ConfigDocs;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.EffectiveConfig;
import ucm.pipeline.config.ModelFingerprint;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.convert.ConfigConversion;
import ucm.pipeline.convert.ConfigConversion.Converted;
import ucm.pipeline.convert.ConfigConversion.Origin;

/** {@code ucm config}: checks, shows, documents and converts configurations. */
@Command(name = "config", description = "Checks, shows and converts configuration files.")
public final class ConfigCommand extends CliCommand {
  private static final Map<String, Origin> ORIGINS =
      Map.of("lmcache", Origin.LMCACHE, "rtp-llm", Origin.RTP_LLM);

  @Command(
      name = "check",
      description =
          "Reports everything that is wrong with a file; exit code 2 when it cannot be used.")
  int check(
      @Parameters(paramLabel = "FILE", description = "the YAML file") Path file,
      @Option(names = "--json", description = "print JSON instead of text") boolean json,
      @Mixin PluginsOption plugins) {
    ConfigReport report;
    @Nullable ModelFingerprint inForce = null;
    try {
      UcmConfig config = UcmConfig.read(file);
      report = MetricsOptions.check(config, plugins.catalog());
      inForce = report.hasErrors() ? null : config.settings().modelFingerprint();
    } catch (ConfigException e) {
      report = e.report();
    }
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>(report.data());
      if (inForce != null) {
        data.put("model_fingerprint", inForce.word());
      }
      FormatOptions.json(out(), data);
    } else {
      if (inForce != null) {
        say(inForce.line());
      }
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

  @Command(
      name = "convert",
      description = {
        "Writes the configuration of another KV cache in 3FS as one of UCM, for Cache|Ds3fs.",
        "",
        "lmcache: the YAML file that LMCACHE_CONFIG_FILE names, with a plugin hf3fs or a remote_url"
            + " hf3fs:///...",
        "rtp-llm: a file with its environment and arguments, as in a start script (REUSE_CACHE=1"
            + " ENABLE_3FS=1, or --reuse_cache True --enable_3fs True).",
        "",
        "What has no counterpart is told on the standard error and in comments. Blocks that the"
            + " other cache stored are not converted."
      })
  void convert(
      @Option(
              names = "--from",
              required = true,
              paramLabel = "lmcache|rtp-llm",
              description = "whose configuration it is")
          String from,
      @Parameters(paramLabel = "FILE", description = "the file to convert") Path file,
      @Option(
              names = "--output",
              paramLabel = "FILE",
              description = "write to this file instead of the standard output")
          @Nullable Path output,
      @Option(names = "--force", description = "replace the file of --output if it exists")
          boolean force) {
    Origin origin = ORIGINS.get(from);
    if (origin == null) {
      throw new UsageException("--from is lmcache or rtp-llm; found " + from);
    }
    Converted converted = ConfigConversion.convert(origin, file);
    if (output != null) {
      requireOther(output, file);
      UsageException.when(
          Files.isRegularFile(output) && !force,
          output + " exists; name another file, or add --force");
    }
    OutputFile.write(output, converted.yaml(), out());
    converted.report().findings().forEach(err()::println);
  }

  private static void requireOther(Path output, Path file) {
    try {
      UsageException.when(
          Files.exists(output) && Files.isSameFile(output, file),
          "--output names the file to be converted, " + file + "; name another");
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + output + ": " + FileFault.of(e), e);
    }
  }
}
