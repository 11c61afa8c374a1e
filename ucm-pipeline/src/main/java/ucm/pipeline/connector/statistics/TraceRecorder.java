package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.pipeline.connector.engine.EngineSpec;

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
  private static final long CLOSE_SECONDS = 10;
  private static final long MICROS = 1_000_000;

  private record Entry(long micros, String requestId, int input, int output, BlockIds ids) {}

  private static final Entry END = new Entry(0, "", 0, 0, BlockIds.empty());

  private final BlockingQueue<Entry> queue = new ArrayBlockingQueue<>(QUEUE_DEPTH);
  private final RotatedFile file;
  private final ConnectorFaults faults;
  private final StoreMetrics.Counter dropped;
  private final LongSupplier microClock;
  private final Thread writer;
  private volatile boolean closing;

  /**
   * Starts the writer.
   *
   * @param microClock wall-clock time in microseconds
   */
  public TraceRecorder(
      EngineSpec spec,
      TraceOptions options,
      StoreMetrics metrics,
      ConnectorFaults faults,
      LongSupplier microClock) {
    this.faults = faults;
    this.microClock = microClock;
    this.dropped =
        metrics.counter("connector_dropped_traces", "Requests that no trace was written of.");
    String name =
        "ucm-trace-"
            + spec.instance().replaceAll("[^A-Za-z0-9._-]", "_")
            + "-"
            + ProcessHandle.current().pid();
    String head =
        "UCMTraceMeta: type=standard, is_mla="
            + spec.mla()
            + ", vllm_hash_block_size="
            + spec.blockTokens()
            + "\n";
    this.file = new RotatedFile(options, name, head.getBytes(StandardCharsets.UTF_8));
    this.writer = Thread.ofPlatform().name("ucm-connector-trace-0").daemon().start(this::write);
  }

  /** Records a request; never waits. */
  public void record(String requestId, int inputTokens, int outputTokens, BlockIds ids) {
    Entry entry = new Entry(microClock.getAsLong(), requestId, inputTokens, outputTokens, ids);
    if (closing || !queue.offer(entry)) {
      dropped.increment();
      faults.record(
          "traces come faster than " + file + " takes them, some are dropped", "trace queue");
    }
  }

  private void write() {
    try {
      for (Entry entry = queue.take(); !entry.equals(END); entry = queue.take()) {
        try {
          file.append(line(entry));
        } catch (IOException e) {
          dropped.increment();
          faults.record("a trace could not be written to " + file, e);
        }
      }
    } catch (InterruptedException e) {
      // Only close() interrupts, when it has waited long enough.
      Thread.currentThread().interrupt();
    } finally {
      closeFile();
    }
  }

  private void closeFile() {
    try {
      file.close();
    } catch (IOException e) {
      faults.record("the trace " + file + " was not closed", e);
    }
  }

  private static byte[] line(Entry entry) {
    BlockIds ids = entry.ids();
    StringBuilder line = new StringBuilder(128 + 36 * ids.size());
    line.append("timestamp: ").append(entry.micros() / MICROS).append('.');
    String fraction = Long.toString(MICROS + entry.micros() % MICROS);
    line.append(fraction, 1, fraction.length());
    line.append(", request_id: ").append(oneLine(entry.requestId()));
    line.append(", input_length: ").append(entry.input());
    line.append(", output_length: ").append(entry.output());
    line.append(", ucm_block_ids: [");
    for (int i = 0; i < ids.size(); i++) {
      line.append(i == 0 ? "'" : ", '").append(ids.hex(i)).append('\'');
    }
    return line.append("]\n").toString().getBytes(StandardCharsets.UTF_8);
  }

  /** An id as it was given, unless it would end the line. */
  private static String oneLine(String id) {
    return id.replace('\n', '_').replace('\r', '_');
  }

  /** Writes what waits, for ten seconds at the most, and ends the writer. */
  @Override
  public void close() {
    closing = true;
    try {
      if (!queue.offer(END, CLOSE_SECONDS, TimeUnit.SECONDS)) {
        writer.interrupt();
      }
      if (!writer.join(Duration.ofSeconds(CLOSE_SECONDS))) {
        writer.interrupt();
      }
    } catch (InterruptedException e) {
      writer.interrupt();
      Thread.currentThread().interrupt();
    }
  }
}
