package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.OnlineCurve;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.connector.engine.EngineSpec;

/**
 * What lite mode knows while it runs: the hit rate so far, and from a sample the hit rate of caches
 * of other sizes. A thread of its own publishes it from time to time when there
 * were requests: as gauges, and as a small file beside the traces that {@code ucm lite status} reads.
 *
 * <p>{@link #add} is for one thread; gauges may be read by any.
 */
public final class LiteMonitor implements AutoCloseable {

  /** Where the files are, in the folder of the traces. */
  static final String FOLDER = "lite";

  private static final int SAMPLED_BLOCKS = 8192;

  /** How often what is new is published. */
  public static final Duration INTERVAL = Duration.ofSeconds(5);

  private static final long CLOSE_SECONDS = 10;
  private static final long MILLION = 1_000_000;

  private final int blockTokens;
  private final OnlineCurve online = new OnlineCurve(SAMPLED_BLOCKS);
  private final LiteStatusFile file;
  private final ConnectorFaults faults;
  private final ScheduledThreadPoolExecutor publisher;
  private volatile HitStatistics statistics = HitStatistics.NONE;
  private volatile OnlineCurve.Snapshot shown = online.snapshot();

  /**
   * Starts the publisher.
   *
   * @param traces the folder of traces
   * @param interval between two publications
   */
  public LiteMonitor(
      EngineSpec spec,
      Path traces,
      Duration interval,
      StoreMetrics metrics,
      ConnectorFaults faults) {
    this.blockTokens = spec.blockTokens();
    this.faults = faults;
    this.file = new LiteStatusFile(traces.resolve(FOLDER), spec, Instant.now());
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
    gauge(metrics, "lite_requests", "Requests counted in lite mode.", now -> now.requests());
    gauge(
        metrics,
        "lite_unique_blocks",
        "Distinct blocks of prompts, estimated.",
        now -> now.uniqueBlocks());
    gauge(
        metrics,
        "lite_sample_rate",
        "Share of the blocks that the curve is estimated from.",
        now -> now.curve().sampleRate());
    gauge(
        metrics,
        "lite_knee_tokens",
        "Capacity of an LRU cache from which on more of it brings less than its share.",
        now -> (double) now.curve().kneeCapacity() * blockTokens);
    gauge(
        metrics,
        "lite_ideal_hit_rate",
        "Share of input tokens that a cache of any size would have hit.",
        now -> now.hitRate(LruCurve.UNBOUNDED));
    for (long tokens : LiteStatusFile.CAPACITIES) {
      long millions = tokens / MILLION;
      gauge(
          metrics,
          "lite_lru_hit_rate_" + millions + "m_tokens",
          "Share of input tokens that an LRU cache of %s million tokens would have hit."
              .formatted(millions),
          now -> now.hitRate(tokens / blockTokens));
    }
  }

  private void gauge(
      StoreMetrics metrics,
      String name,
      String help,
      ToDoubleFunction<OnlineCurve.Snapshot> value) {
    metrics.gauge(name, help, () -> value.applyAsDouble(shown));
  }

  /**
   * Takes a request in; never waits for the file.
   *
   * @param soFar the look-ups until now, this request included
   */
  public void add(BlockIds ids, int inputTokens, HitStatistics soFar) {
    int blocks = ids.size();
    long[] packed = new long[2 * blocks];
    for (int i = 0; i < blocks; i++) {
      packed[2 * i] = ids.high(i);
      packed[2 * i + 1] = ids.low(i);
    }
    // First: who publishes between the two sees by the curve that a request is still to come.
    statistics = soFar;
    online.add(TraceRequest.of(0, "", inputTokens, 0, blockTokens, packed));
  }

  private void publishWhatIsNew() {
    if (statistics.requests() != shown.requests()) {
      publish(/* running= */ true);
    }
  }

  private void publish(boolean running) {
    // Before the statistics, which are those of its last request or of a later one.
    OnlineCurve.Snapshot now = online.snapshot();
    shown = now;
    try {
      file.write(now, statistics, running, Instant.now());
    } catch (IOException e) {
      faults.record("the status of lite mode could not be written to " + file, e);
    }
  }

  /** Publishes the end and ends the publisher. Idempotent. */
  @Override
  public void close() {
    if (publisher.isShutdown()) {
      return;
    }
    publisher.execute(() -> publish(/* running= */ false));
    publisher.shutdown();
    try {
      if (!publisher.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
        publisher.shutdownNow();
      }
    } catch (InterruptedException e) {
      publisher.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }
}
