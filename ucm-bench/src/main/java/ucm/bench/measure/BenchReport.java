package ucm.bench.measure;

import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import ucm.cli.output.Durations;
import ucm.cli.output.Figures;
import ucm.cli.output.Json;
import ucm.cli.output.Spread;
import ucm.cli.output.Table;

/** Shows what benchmarks of stores found. */
public final class BenchReport {

  private static final double MIB = 1048576;

  private BenchReport() {}

  /** Runnable threads of the whole machine over the last minute: how alone the benchmark is. */
  public static double loadAverage() {
    return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
  }

  /** Adds what figures depend on to JSON. */
  public static void addMachine(Map<String, Object> data, double loadBefore) {
    data.put("processors", Runtime.getRuntime().availableProcessors());
    data.put("java", Runtime.version().toString());
    data.put("load_average_before", loadBefore);
    data.put("load_average_after", loadAverage());
  }

  /** Prints what figures depend on. */
  public static void printMachine(PrintWriter out, double loadBefore) {
    out.printf(
        Locale.ROOT,
        "%d processors, Java %s; load average %.1f before, %.1f after.%n",
        Runtime.getRuntime().availableProcessors(),
        Runtime.version(),
        loadBefore,
        loadAverage());
  }

  public static void printJson(PrintWriter out, double loadBefore, List<BenchResult> results) {
    Map<String, Object> machine = new LinkedHashMap<>();
    addMachine(machine, loadBefore);
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("machine", machine);
    data.put("results", results.stream().map(BenchResult::data).toList());
    Json.print(out, data);
  }

  public static void print(PrintWriter out, double loadBefore, List<BenchResult> results) {
    results.forEach(result -> print(out, result));
    printMachine(out, loadBefore);
    out.println(
        "RATIO is ours by the limit, pair by pair within a round; over 1 is faster than the plain"
            + " calls.");
    out.println(
        "The limits move the same segments with FileChannel and memcpy of Java, on as many threads"
            + " as said; files are one a block, not synced.");
    out.println(
        "ALLOCATED is heap of all threads of the process, by ThreadMXBean."
            + "getTotalThreadAllocatedBytes. Every loaded byte was compared.");
  }

  private static void print(PrintWriter out, BenchResult result) {
    BenchPlan plan = result.plan();
    out.printf(
        Locale.ROOT,
        "%s%s: blocks of %.2f MiB, %d shard(s) of %d tensor(s) of %.1f KiB; %d rounds of %d blocks,"
            + " %s, %d task(s) at a time; limits on %d thread(s), in the same steps%n",
        plan.config().pipeline(),
        plan.direct() ? " (io_direct)" : "",
        plan.layout().blockSize() / MIB,
        plan.layout().shardCount(),
        plan.layout().tensorCount(),
        plan.layout().tensorSize(0) / 1024.0,
        plan.repeat(),
        plan.blocks(),
        plan.layerwise() ? "a shard of each a task" : plan.taskBlocks() + " a task",
        plan.inFlight(),
        plan.threads());
    out.println();
    Table speeds =
        new Table(
            "WHAT", "MEDIAN", "MIN", "MAX", "UNIT", "LIMIT", "RATIO", "MIN", "MAX", "LIMIT IS");
    for (BenchMeasure measure : result.measures()) {
      Spread values = measure.values();
      Spread ratios = measure.ratios();
      speeds.row(
          measure.name(),
          speed(values.median()),
          speed(values.min()),
          speed(values.max()),
          measure.unit(),
          speed(measure.limits().median()),
          Figures.plain(ratios.median()),
          Figures.plain(ratios.min()),
          Figures.plain(ratios.max()),
          measure.limitName());
    }
    speeds.print(out);
    out.println();
    Table calls =
        new Table("CALL", "CALLS", "P50 MS", "P99 MS", "ALLOCATED B/CALL", "ALLOCATED B", "FOR A");
    for (BenchCalls call : result.calls()) {
      calls.row(
          call.name(),
          Long.toString(call.calls()),
          millis(call.millis(0.5)),
          millis(call.millis(0.99)),
          String.format(Locale.ROOT, "%.0f", call.bytesPerCall()),
          String.format(Locale.ROOT, "%.0f", call.bytesPerItem()),
          call.item());
    }
    calls.print(out);
    out.println();
    out.println(result.life());
    out.println(result.fio() == null ? "fio is not installed: no figures of it." : result.fio());
    out.println();
  }

  private static String speed(double value) {
    return Figures.fixed(value, value < 1000 ? 2 : 0);
  }

  /** Look-ups take microseconds. */
  private static String millis(double value) {
    return value < 1 ? String.format(Locale.ROOT, "%.4f", value) : Durations.millis(value);
  }
}
