package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.stream.LongStream;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.OnlineCurve;
import ucm.pipeline.connector.engine.EngineSpec;

/**
 * The file in which an engine in lite mode tells what it found, {@code lite/INSTANCE-PID.json}: one
 * JSON object, replaced as a whole. Used by one thread.
 */
final class LiteStatusFile {

  /** Capacities in tokens at which the curve is given. */
  static final long[] CAPACITIES =
      LongStream.of(1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
          .map(millions -> millions * 1_000_000)
          .toArray();

  private final JsonFactory json = new JsonFactory();
  private final EngineSpec spec;
  private final Instant started;
  private final long pid = ProcessHandle.current().pid();
  private final Path folder;
  private final Path path;
  private final Path part;

  LiteStatusFile(Path folder, EngineSpec spec, Instant started) {
    this.folder = folder;
    this.spec = spec;
    this.started = started;
    String name = spec.instance().replaceAll("[^A-Za-z0-9._-]", "_") + "-" + pid + ".json";
    this.path = folder.resolve(name);
    this.part = folder.resolve(name + ".part");
  }

  void write(OnlineCurve.Snapshot now, HitStatistics statistics, boolean running, Instant at)
      throws IOException {
    PrivateFiles.createFolder(folder);
    try (OutputStream to = PrivateFiles.replace(part)) {
      to.write(text(now, statistics, running, at).getBytes(StandardCharsets.UTF_8));
    }
    Files.move(part, path, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }

  private String text(
      OnlineCurve.Snapshot now, HitStatistics statistics, boolean running, Instant at) {
    StringWriter text = new StringWriter();
    try (JsonGenerator to = json.createGenerator(ObjectWriteContext.empty(), text)) {
      to.writeStartObject();
      to.writeStringProperty("instance", spec.instance());
      to.writeStringProperty("model", spec.model());
      to.writeNumberProperty("pid", pid);
      to.writeBooleanProperty("running", running);
      to.writeStringProperty("started", started.truncatedTo(ChronoUnit.SECONDS).toString());
      to.writeStringProperty("updated", at.truncatedTo(ChronoUnit.SECONDS).toString());
      to.writeNumberProperty("block_tokens", spec.blockTokens());
      to.writeNumberProperty("requests", statistics.requests());
      to.writeNumberProperty("blocks", statistics.totalBlocks());
      to.writeNumberProperty("hbm_blocks", statistics.hbmBlocks());
      to.writeNumberProperty("external_blocks", statistics.externalBlocks());
      to.writeNumberProperty("external_hit_rate", statistics.externalHitRate());
      to.writeNumberProperty("input_tokens", now.inputTokens());
      to.writeNumberProperty("unique_blocks", now.uniqueBlocks());
      to.writeNumberProperty("sample_rate", now.curve().sampleRate());
      to.writeNumberProperty("ideal_token_hit_rate", now.hitRate(LruCurve.UNBOUNDED));
      to.writeNumberProperty("knee_tokens", now.curve().kneeCapacity() * spec.blockTokens());
      to.writeArrayPropertyStart("lru");
      for (long tokens : CAPACITIES) {
        to.writeStartObject();
        to.writeNumberProperty("capacity_tokens", tokens);
        to.writeNumberProperty("token_hit_rate", now.hitRate(tokens / spec.blockTokens()));
        to.writeEndObject();
      }
      to.writeEndArray();
      to.writeEndObject();
    }
    return text.append('\n').toString();
  }

  @Override
  public String toString() {
    return path.toString();
  }
}
