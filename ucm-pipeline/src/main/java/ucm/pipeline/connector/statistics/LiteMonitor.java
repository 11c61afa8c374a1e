package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.json.JsonFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.Sampling;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.platform.thread.ThreadEnd;

/**
 * What lite mode knows while it runs: the hit rate so far, and from a sample the hit rate of caches
 * of other sizes. A thread of its own publishes it from time to time when there
 * were requests: as gauges, and as the small file {@code lite/INSTANCE-PID.json} beside the traces, which
 * {@code ucm lite status} reads: one JSON object, replaced as a whole.
 *
 * <p>{@link #add} is for one thread; gauges may be read by any.
 */
public final class LiteMonitor implements AutoCloseable {

  private static final long MILLION = 1_000_000;

  /** Capacities in tokens at which the curve is given. */
  private static final long[] CAPACITIES =
      LongStream.of(1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
          .map(millions -> millions * MILLION)
          .toArray();

  private static final int SAMPLED_BLOCKS = 8192;

  /** How often what is new is published. */
  public static final Duration INTERVAL = Duration.ofSeconds(5);

  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final JsonFactory json = new JsonFactory();
  private final EngineSpec spec;
  private final int blockTokens;
  private final Instant started = Instant.now();
  private final long pid = ProcessHandle.current().pid();
  private final Path folder;
  private final String wanted;
  // Guarded by itself; of about 100 bytes a sampled block, and 200 KB.
  private final TraceAnalyzer online =
      new TraceAnalyzer(AnalysisOptions.DEFAULT.sampledOnly(Sampling.fixedSize(SAMPLED_BLOCKS)));
  private final ConnectorFaults faults;
  private final ScheduledThreadPoolExecutor publisher;
  // Of the publisher's thread.
  private @Nullable WriterName name;
  private volatile HitStatistics statistics = HitStatistics.NONE;
  private volatile TraceAnalysis shown = online.finish();

  /**
   * Starts the publisher.
   *
   * @param traces the folder of traces
   * @param interval between two publications
   */
  public LiteMonitor(EngineSpec spec, Path traces, Duration interval, StoreMetrics metrics) {
    this.spec = spec;
    this.blockTokens = spec.blockTokens();
    this.faults = new ConnectorFaults("lite mode of " + spec.instance(), metrics);
    String instance = spec.instance().replaceAll("[^A-Za-z0-9._-]", "_");
    this.folder = traces.resolve("lite");
    this.wanted = instance + "-" + pid;
    gauges(metrics);
    this.publisher =
        new ScheduledThreadPoolExecutor(
            1, Thread.ofPlatform().name("ucm-connector-lite-0").daemon().factory());
    var _ =
        publisher.scheduleWithFixedDelay(
            this::publishWhatIsNew, interval.toNanos(), interval.toNanos(), TimeUnit.NANOSECONDS);
  }

  private void gauges(StoreMetrics metrics) {
    metrics.gauge(
        "lite_hit_rate",
        "Share of the blocks of prompts that the Fake store remembered.",
        () -> statistics.externalHitRate());
    metrics.gauge(
        "lite_blocks",
        "Full blocks of the prompts counted in lite mode.",
        () -> (double) statistics.totalBlocks());
    metrics.gauge(
        "lite_hbm_blocks",
        "Those of them that were on the device already.",
        () -> (double) statistics.hbmBlocks());
    metrics.gauge("lite_block_tokens", "Tokens of a block.", () -> blockTokens);
    metrics.gauge(
        "lite_requests", "Requests counted in lite mode.", () -> shown.summary().requests());
    metrics.gauge(
        "lite_unique_blocks",
        "Distinct blocks of prompts, estimated.",
        () -> shown.summary().uniqueBlocks());
    metrics.gauge(
        "lite_sample_rate",
        "Share of the blocks that the curve is estimated from.",
        () -> curve(shown).sampleRate());
    metrics.gauge(
        "lite_knee_tokens",
        "Capacity of an LRU cache from which on more of it brings less than its share.",
        () -> (double) curve(shown).kneeCapacity() * blockTokens);
    metrics.gauge(
        "lite_ideal_hit_rate",
        "Share of input tokens that a cache of any size would have hit.",
        () -> hitRate(shown, LruCurve.UNBOUNDED));
    for (long tokens : CAPACITIES) {
      long millions = tokens / MILLION;
      metrics.gauge(
          "lite_lru_hit_rate_" + millions + "m_tokens",
          "Share of input tokens that an LRU cache of %s million tokens would have hit."
              .formatted(millions),
          () -> hitRate(shown, tokens / blockTokens));
    }
  }

  /**
   * Takes a request in; never waits for the file.
   *
   * @param soFar the look-ups until now, this request included
   */
  public void add(BlockIds ids, int inputTokens, HitStatistics soFar) {
    // First: who publishes between the two sees by the curve that a request is still to come.
    statistics = soFar;
    synchronized (online) {
      online.request(new TraceRequest(0, "", inputTokens, 0, blockTokens, ids));
    }
  }

  private void publishWhatIsNew() {
    if (statistics.requests() != shown.summary().requests()) {
      publish(/* running= */ true);
    }
  }

  private void publish(boolean running) {
    // Before the statistics, which are those of its last request or of a later one.
    TraceAnalysis now;
    synchronized (online) {
      now = online.finish();
    }
    shown = now;
    try {
      write(text(now, statistics, running));
    } catch (IOException e) {
      faults.record("the status of lite mode could not be written into " + folder, e);
    }
  }

  private void write(String text) throws IOException {
    WriterName own = name;
    if (own == null) {
      own = WriterName.take(folder, wanted);
      name = own;
    }
    Path file = folder.resolve(own + ".json");
    Path part = file.resolveSibling(file.getFileName() + ".part");
    try (OutputStream to = PrivateFiles.replace(part)) {
      to.write(text.getBytes(StandardCharsets.UTF_8));
    }
    Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }

  /** Roots are touched last in it, as the distances are then estimated without bias. */
  private static LruCurve curve(TraceAnalysis of) {
    return of.lru(TouchOrder.ROOT_LAST);
  }

  /** The share of input tokens that a cache of so many blocks would have hit, 0 to 1. */
  private static double hitRate(TraceAnalysis of, long capacityBlocks) {
    return Math.min(1, of.summary().tokenHitRate(curve(of).hitTokens(capacityBlocks)));
  }

  private String text(TraceAnalysis now, HitStatistics hits, boolean running) {
    StringWriter text = new StringWriter();
    try (JsonGenerator to = json.createGenerator(ObjectWriteContext.empty(), text)) {
      to.writeStartObject();
      to.writeStringProperty("instance", spec.instance());
      to.writeStringProperty("model", spec.model());
      to.writeNumberProperty("pid", pid);
      to.writeBooleanProperty("running", running);
      to.writeStringProperty("started", started.truncatedTo(ChronoUnit.SECONDS).toString());
      to.writeStringProperty("updated", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
      to.writeNumberProperty("block_tokens", blockTokens);
      to.writeNumberProperty("requests", hits.requests());
      to.writeNumberProperty("blocks", hits.totalBlocks());
      to.writeNumberProperty("hbm_blocks", hits.hbmBlocks());
      to.writeNumberProperty("external_blocks", hits.externalBlocks());
      to.writeNumberProperty("external_hit_rate", hits.externalHitRate());
      to.writeNumberProperty("input_tokens", now.summary().inputTokens());
      to.writeNumberProperty("unique_blocks", now.summary().uniqueBlocks());
      to.writeNumberProperty("sample_rate", curve(now).sampleRate());
      to.writeNumberProperty("ideal_token_hit_rate", hitRate(now, LruCurve.UNBOUNDED));
      to.writeNumberProperty("knee_tokens", curve(now).kneeCapacity() * blockTokens);
      to.writeArrayPropertyStart("lru");
      for (long tokens : CAPACITIES) {
        to.writeStartObject();
        to.writeNumberProperty("capacity_tokens", tokens);
        to.writeNumberProperty("token_hit_rate", hitRate(now, tokens / blockTokens));
        to.writeEndObject();
      }
      to.writeEndArray();
      to.writeEndObject();
    }
    return text.append('\n').toString();
  }

  private void giveNameBack() {
    try {
      if (name != null) {
        name.close();
      }
    } catch (IOException e) {
      faults.record("the name of a status of lite mode was not given back", e);
    }
  }

  /** Publishes the end and ends the publisher. Idempotent. */
  @Override
  public void close() {
    if (publisher.isShutdown()) {
      return;
    }
    publisher.execute(
        () -> {
          publish(/* running= */ false);
          giveNameBack();
        });
    publisher.shutdown();
    if (!ThreadEnd.await(PATIENCE, publisher)) {
      publisher.shutdownNow();
    }
  }
}
