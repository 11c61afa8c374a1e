package ucm.cli.lite;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;

/** {@code ucm lite status}: hit rate so far and the estimated curve of engines in lite mode. */
@Command(
    name = "status",
    description = {
      "Prints what engines in lite mode found so far: the hit rate, and from a sample of the blocks"
          + " the hit rate of LRU caches of other sizes.",
      "Each engine renews its file every five seconds while requests come, and leaves it there"
          + " when it ends."
    })
final class LiteStatusCommand extends JsonCommand {

  private static final String STATUS_FOLDER = "lite";

  @Parameters(
      arity = "0..1",
      paramLabel = "FOLDER",
      description = "where the engines write traces (default: UCM_LOG_PATH, or log)")
  private @Nullable Path folder;

  @Override
  public void run() {
    Path traces =
        folder != null ? folder : Path.of(System.getenv().getOrDefault("UCM_LOG_PATH", "log"));
    List<ObjectNode> engines = files(traces).stream().map(LiteStatusCommand::read).toList();
    print(() -> engines, () -> engines.forEach(engine -> print(out(), engine)));
  }

  /** The files of engines, in the folder of that name within that of traces. */
  static List<Path> files(Path traces) {
    Path folder = traces.resolve(STATUS_FOLDER);
    try (Stream<Path> entries = Files.isDirectory(folder) ? Files.list(folder) : Stream.empty()) {
      List<Path> found =
          entries
              .filter(entry -> entry.toString().endsWith(".json") && Files.isRegularFile(entry))
              .sorted()
              .toList();
      UsageException.when(
          found.isEmpty(),
          String.format(
              "no engine in lite mode has written to %s: name the folder of its traces"
                  + " (UCM_LOG_PATH of the engine), and set use_lite: true",
              folder));
      return found;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot list " + folder + ": " + FileFault.of(e), e);
    }
  }

  static ObjectNode read(Path file) {
    Exception cause = null;
    try {
      JsonNode status = JsonMapper.shared().readTree(Files.readString(file));
      if (status instanceof ObjectNode engine && engine.path("lru").isArray()) {
        engine.put("state", state(engine));
        return engine;
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + file + ": " + FileFault.of(e), e);
    } catch (JacksonException e) {
      cause = e;
    }
    throw new UncheckedIOException(
        new IOException(
            file + " is no status of lite mode: remove it if no engine writes it", cause));
  }

  /** An engine that was killed could not say so; its process number tells, on the same machine. */
  private static String state(JsonNode engine) {
    if (!engine.path("running").asBoolean()) {
      return "ended";
    }
    boolean alive =
        ProcessHandle.of(engine.path("pid").asLong()).map(ProcessHandle::isAlive).orElse(false);
    return alive ? "running" : "not on this machine, or killed";
  }

  static void print(PrintWriter out, JsonNode engine) {
    Table table = new Table("LITE", engine.path("instance").asString());
    table.row("model", engine.path("model").asString());
    String where = engine.path("pid").asString();
    table.row("process", where + ", " + engine.path("state").asString());
    table.row("updated", updated(engine.path("updated").asString()));
    table.row("requests", Figures.grouped(engine.path("requests").asLong()));
    table.row(
        "blocks",
        "%s of %s tokens; %s on the device already"
            .formatted(
                Figures.grouped(engine.path("blocks").asLong()),
                engine.path("block_tokens").asInt(),
                Figures.grouped(engine.path("hbm_blocks").asLong())));
    table.row("hit rate so far", Figures.percent(engine.path("external_hit_rate").asDouble()));
    table.row("unique blocks", "about " + Figures.grouped(engine.path("unique_blocks").asLong()));
    table.row(
        "knee of the curve",
        Figures.fixed(engine.path("knee_tokens").asDouble() / 1e6, 2) + " million tokens");
    table.printSection(out);
    Table curve = new Table("CAPACITY, MTOKENS", "LRU");
    for (JsonNode point : engine.path("lru")) {
      curve.row(
          Figures.grouped(point.path("capacity_tokens").asLong() / 1_000_000),
          Figures.percent(point.path("token_hit_rate").asDouble()));
    }
    curve.row("ideal", Figures.percent(engine.path("ideal_token_hit_rate").asDouble()));
    curve.printSection(out);
    out.println(
        "Share of input tokens, estimated from "
            + Figures.percent(engine.path("sample_rate").asDouble())
            + " of the blocks, those on the device included.");
    out.println();
  }

  private static String updated(String at) {
    try {
      long seconds = Math.max(0, Duration.between(Instant.parse(at), Instant.now()).toSeconds());
      return at + ", " + Figures.duration((double) seconds) + " ago";
    } catch (DateTimeParseException e) {
      return at;
    }
  }
}
