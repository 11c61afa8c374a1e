package ucm.bench.measure;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import ucm.cli.output.Columns;
import ucm.cli.output.Figures;
import ucm.cli.output.Spread;

/**
 * The single calls of one kind: how long each took, and what they allocated on the heap, counted over
 * all threads of the process, also those of the store. Used by one thread.
 */
public final class BenchCalls {

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  static final Columns<BenchCalls> COLUMNS =
      new Columns<BenchCalls>()
          .both("CALL", "name", calls -> calls.name)
          .both("CALLS", "calls", calls -> calls.millis.size())
          .both("P50 MS", "p50_ms", calls -> calls.quantile(0.5), BenchCalls::millis)
          .both("P99 MS", "p99_ms", calls -> calls.quantile(0.99), BenchCalls::millis)
          .both(
              "ALLOCATED B/CALL",
              "allocated_bytes_per_call",
              calls -> ratio(calls.allocatedBytes, calls.millis.size()),
              bytes -> Figures.whole(bytes))
          .both(
              "ALLOCATED B",
              "allocated_bytes_per_item",
              calls -> ratio(calls.allocatedBytes, calls.items),
              bytes -> Figures.whole(bytes))
          .both("FOR A", "item", calls -> calls.item)
          .data("items_per_call", calls -> ratio(calls.items, calls.millis.size()));

  private final String name;
  private final String item;
  private final List<Double> millis = new ArrayList<>();
  private long items;
  private long allocatedBytes;

  /** Counts calls that have several of an item each, a shard or an id. */
  public BenchCalls(String name, String item) {
    this.name = name;
    this.item = item;
  }

  /** Bytes allocated so far by all threads, living and ended. */
  public static long allocatedNow() {
    return THREADS.getTotalThreadAllocatedBytes();
  }

  /** Calls that took so long each, were about some items together, and allocated on the heap. */
  public void add(long[] nanos, long someItems, long bytes) {
    Arrays.stream(nanos).forEach(one -> millis.add(one / 1e6));
    items += someItems;
    allocatedBytes += bytes;
  }

  public void clear() {
    millis.clear();
    items = 0;
    allocatedBytes = 0;
  }

  private double quantile(double share) {
    return Spread.quantile(millis.stream().mapToDouble(Double::doubleValue).toArray(), share);
  }

  /** Look-ups take microseconds. */
  private static String millis(double value) {
    return value < 1 ? String.format(Locale.ROOT, "%.4f", value) : Figures.millis(value);
  }

  private static double ratio(long part, long whole) {
    return whole == 0 ? 0 : (double) part / whole;
  }
}
