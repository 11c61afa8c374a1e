package ucm.bench.measure;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import ucm.cli.output.Durations;

/**
 * The single calls of one kind: how long each took, and what they allocated on the heap, counted over
 * all threads of the process, also those of the store. Used by one thread.
 */
public final class BenchCalls {

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private final String name;
  private final String item;
  private final Durations durations = new Durations();
  private long calls;
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
    for (long one : nanos) {
      durations.add(one);
    }
    calls += nanos.length;
    items += someItems;
    allocatedBytes += bytes;
  }

  String name() {
    return name;
  }

  String item() {
    return item;
  }

  long calls() {
    return calls;
  }

  double millis(double quantile) {
    return durations.quantileMillis(quantile);
  }

  double bytesPerCall() {
    return calls == 0 ? 0 : (double) allocatedBytes / calls;
  }

  double bytesPerItem() {
    return items == 0 ? 0 : (double) allocatedBytes / items;
  }

  /** For JSON. */
  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("name", name);
    data.put("calls", calls);
    data.put("p50_ms", millis(0.5));
    data.put("p99_ms", millis(0.99));
    data.put("item", item);
    data.put("items_per_call", calls == 0 ? 0 : (double) items / calls);
    data.put("allocated_bytes_per_call", bytesPerCall());
    data.put("allocated_bytes_per_item", bytesPerItem());
    return data;
  }
}
