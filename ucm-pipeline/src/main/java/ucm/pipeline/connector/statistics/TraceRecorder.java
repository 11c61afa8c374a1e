package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.platform.thread.ThreadEnd;

/**
 * Writes one line for each request, in the form of the original's traces, on a thread of its own:
 *
 * <pre>
 * timestamp: {s}, request_id: {id}, input_length: {n}, output_length: {m}, ucm_block_ids: ['{32 hex}', ...]
 * </pre>
 *
 * <p>Every file begins with a {@code UCMTraceMeta:} line that names the block size. The engine's
 * thread only puts a record into a queue; when that is full, because the disk is slow or full, the
 * record is dropped and counted. Thread-safe.
 */
public final class TraceRecorder implements AutoCloseable {

  private static final int QUEUE_DEPTH = 4096;
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final long MICROS = 1_000_000;

  private final RotatedFile file;
  private final ConnectorFaults faults;
  private final StoreMetrics.Counter dropped;
  private final LongSupplier microClock;
  private final ThreadPoolExecutor writer;

  /**
   * Starts the writer.
   *
   * @param microClock wall-clock time in microseconds
   */
  public TraceRecorder(
      EngineSpec spec, TraceOptions options, StoreMetrics metrics, LongSupplier microClock) {
    this.faults = new ConnectorFaults("traces of " + spec.instance(), metrics);
    this.microClock = microClock;
    this.dropped =
        metrics.counter("connector_dropped_traces", "Requests that no trace was written of.");
    String instance = spec.instance().replaceAll("[^A-Za-z0-9._-]", "_");
    String name = "ucm-trace-" + instance + "-" + ProcessHandle.current().pid();
    String head =
        "UCMTraceMeta: type=standard, is_mla=%s, vllm_hash_block_size=%s\n"
            .formatted(spec.mla(), spec.blockTokens());
    this.file = new RotatedFile(options, name, head.getBytes(StandardCharsets.UTF_8));
    this.writer =
        new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(QUEUE_DEPTH),
            Thread.ofPlatform().name("ucm-connector-trace-0").daemon().factory());
  }

  /** Records a request; never waits. */
  public void record(String requestId, int inputTokens, int outputTokens, BlockIds ids) {
    long micros = microClock.getAsLong();
    try {
      writer.execute(() -> write(line(micros, requestId, inputTokens, outputTokens, ids)));
    } catch (RejectedExecutionException e) {
      dropped.increment();
      faults.record(
          "traces come faster than " + file + " takes them, some are dropped", "trace queue");
    }
  }

  private void write(byte[] line) {
    try {
      file.append(line);
    } catch (IOException e) {
      dropped.increment();
      faults.record("a trace could not be written to " + file, e);
    }
  }

  private static byte[] line(long micros, String id, int input, int output, BlockIds ids) {
    StringBuilder line = new StringBuilder(128 + 36 * ids.size());
    line.append("timestamp: ").append(micros / MICROS).append('.');
    String fraction = Long.toString(MICROS + micros % MICROS);
    line.append(fraction, 1, fraction.length());
    // An id as it was given, unless it would end the line.
    line.append(", request_id: ").append(id.replace('\n', '_').replace('\r', '_'));
    line.append(", input_length: ").append(input);
    line.append(", output_length: ").append(output);
    line.append(", ucm_block_ids: [");
    for (int i = 0; i < ids.size(); i++) {
      line.append(i == 0 ? "'" : ", '").append(ids.hex(i)).append('\'');
    }
    return line.append("]\n").toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Writes what waits, for ten seconds at the most, and ends the writer. */
  @Override
  public void close() {
    writer.shutdown();
    if (!ThreadEnd.await(PATIENCE, writer)) {
      writer.shutdownNow();
      return; // The writer still has the file.
    }
    try {
      file.close();
    } catch (IOException e) {
      faults.record("the trace " + file + " was not closed", e);
    }
  }
}
