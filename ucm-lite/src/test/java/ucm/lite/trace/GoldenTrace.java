package ucm.lite.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import ucm.api.BlockIds;
import ucm.lite.curve.CacheHits;
import ucm.lite.curve.LruCurve;
import ucm.lite.record.TouchOrder;

/**
 * The small golden trace of the project: drawn by seed, written as Mooncake lines, with the hits of
 * the naive simulation. {@link #main} writes both files again.
 */
public final class GoldenTrace {
  public static final String TRACE = "small_trace.jsonl";
  public static final String GOLDEN = "small_trace_golden.csv";
  private static final long[] CAPACITIES = {0, 1, 10, 50, 100, 200, 300, 400, 600};
  private static final int BLOCK_TOKENS = TraceFormat.MOONCAKE.defaultBlockTokens();

  private GoldenTrace() {}

  public static List<String> traceLines() {
    return requests().stream().map(GoldenTrace::line).toList();
  }

  public static List<String> goldenLines() {
    List<TraceRequest> trace = requests();
    List<String> lines = new ArrayList<>();
    lines.add("policy,touch_order,capacity_blocks,hit_blocks,hit_tokens");
    for (long capacity : CAPACITIES) {
      for (TouchOrder order : TouchOrder.values()) {
        lines.add(line("lru", order, NaiveCache.lru(order, capacity, trace)));
      }
      TouchOrder order = TouchOrder.LEAF_LAST;
      lines.add(line("fifo", order, NaiveCache.fifo(order, capacity, trace)));
    }
    for (TouchOrder order : TouchOrder.values()) {
      lines.add(line("lru", order, NaiveCache.lru(order, LruCurve.UNBOUNDED, trace)));
    }
    return lines;
  }

  private static List<TraceRequest> requests() {
    List<TraceRequest> trace = new ArrayList<>();
    for (TraceRequest drawn : RandomTraces.conversations(2026, 250)) {
      int missing = drawn.blockCount() * RandomTraces.BLOCK_TOKENS - drawn.inputTokens();
      int inputTokens = drawn.blockCount() * BLOCK_TOKENS - 31 * missing;
      long[] ids = new long[2 * drawn.blockCount()];
      for (int i = 0; i < drawn.blockCount(); i++) {
        ids[2 * i + 1] = drawn.ids().low(i);
      }
      trace.add(
          new TraceRequest(
              drawn.timestampMillis(),
              "",
              inputTokens,
              drawn.outputTokens(),
              BLOCK_TOKENS,
              BlockIds.wrap(ids)));
    }
    return trace;
  }

  private static String line(TraceRequest request) {
    String ids =
        LongStream.range(0, request.blockCount())
            .map(i -> request.ids().low((int) i))
            .mapToObj(Long::toString)
            .collect(Collectors.joining(", "));
    return "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": %d, \"hash_ids\": [%s]}"
        .formatted(
            (long) request.timestampMillis(), request.inputTokens(), request.outputTokens(), ids);
  }

  private static String line(String policy, TouchOrder order, CacheHits hits) {
    String capacity =
        hits.capacityBlocks() == LruCurve.UNBOUNDED ? "unbounded" : "" + hits.capacityBlocks();
    return String.join(
        ",", policy, order.key(), capacity, "" + hits.hitBlocks(), "" + hits.hitTokens());
  }

  /** Writes both files into the directory named by the argument. */
  static void main(String[] args) throws IOException {
    Path directory = Path.of(args[0]);
    Files.write(directory.resolve(TRACE), traceLines());
    Files.write(directory.resolve(GOLDEN), goldenLines());
  }
}
