package ucm.cli.setup;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.cli.output.CliCommand;
import ucm.cli.output.OutputFile;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;
import ucm.pipeline.convert.ConfigConversion;
import ucm.pipeline.convert.ConfigConversion.Converted;
import ucm.pipeline.convert.ConfigConversion.Origin;

/** {@code ucm config convert}: the configuration of another cache in 3FS as one of UCM. */
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
      "What has no counterpart is told on the standard error and in comments. Blocks that the other"
          + " cache stored are not converted."
    })
final class ConfigConvertCommand extends CliCommand {

  private static final Map<String, Origin> ORIGINS =
      Map.of("lmcache", Origin.LMCACHE, "rtp-llm", Origin.RTP_LLM);

  @Option(
      names = "--from",
      required = true,
      paramLabel = "lmcache|rtp-llm",
      description = "whose configuration it is")
  private String from = "";

  @Parameters(paramLabel = "FILE", description = "the file to convert")
  private Path file = Path.of("");

  @Option(
      names = "--output",
      paramLabel = "FILE",
      description = "write to this file instead of the standard output")
  private @Nullable Path output;

  @Option(names = "--force", description = "replace the file of --output if it exists")
  private boolean force;

  @Override
  public void run() {
    Origin origin = ORIGINS.get(from);
    if (origin == null) {
      throw new UsageException("--from is lmcache or rtp-llm; found " + from);
    }
    Converted converted = ConfigConversion.convert(origin, file);
    if (output != null) {
      requireFree(output);
    }
    OutputFile.write(output, converted.yaml(), out());
    converted.report().findings().forEach(err()::println);
  }

  private void requireFree(Path target) {
    try {
      UsageException.when(
          Files.exists(target) && Files.isSameFile(target, file),
          "--output names the file to be converted, " + file + "; name another");
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + target + ": " + FileFault.of(e), e);
    }
    UsageException.when(
        Files.isRegularFile(target) && !force,
        target + " exists; name another file, or add --force");
  }
}
