package ucm.bench.measure;

import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;

/** Shows what benchmarks of stores found. */
public final class BenchReport {

  private static final Columns<BenchMeasure> SPEEDS =
      new Columns<BenchMeasure>()
          .text("WHAT", BenchMeasure::name)
          .text("MEDIAN", measure -> speed(measure.values().median()))
          .text("MIN", measure -> speed(measure.values().min()))
          .text("MAX", measure -> speed(measure.values().max()))
          .text("UNIT", BenchMeasure::unit)
          .text("LIMIT", measure -> speed(measure.limits().median()))
          .text("RATIO", measure -> Figures.plain(measure.ratios().median()))
          .text("MIN", measure -> Figures.plain(measure.ratios().min()))
          .text("MAX", measure -> Figures.plain(measure.ratios().max()))
          .text("LIMIT IS", BenchMeasure::limitName);

  private BenchReport() {}

  /** What a benchmark of one pipeline with one shape of blocks found. */
  public record Result(BenchPlan plan, List<BenchMeasure> measures, List<BenchCalls> calls) {}

  /** Runnable threads of the whole machine over the last minute: how alone the benchmark is. */
  public static double loadAverage() {
    return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
  }

  public static Fields addMachine(Fields data, double loadBefore) {
    return data.with("processors", Runtime.getRuntime().availableProcessors())
        .with("java", Runtime.version().toString())
        .with("load_average_before", loadBefore)
        .with("load_average_after", loadAverage());
  }

  public static void printMachine(PrintWriter out, double loadBefore) {
    out.printf(
        Locale.ROOT,
        "%d processors, Java %s; load average %.1f before, %.1f after.%n",
        Runtime.getRuntime().availableProcessors(),
        Runtime.version(),
        loadBefore,
        loadAverage());
  }

  public static Fields data(double loadBefore, List<Result> results) {
    return new Fields()
        .with("machine", addMachine(new Fields(), loadBefore))
        .with("results", results.stream().map(BenchReport::data).toList());
  }

  private static Fields data(Result result) {
    BenchPlan plan = result.plan;
    return new Fields()
        .with("pipeline", plan.config().pipeline().toString())
        .with("io_direct", plan.direct())
        .with("block_bytes", plan.layout().blockSize())
        .with("shard_bytes", plan.layout().shardSize())
        .with("tensor_bytes", plan.layout().tensorSize(0))
        .with("blocks", plan.blocks())
        .with("task_blocks", plan.taskBlocks())
        .with("layerwise", plan.layerwise())
        .with("in_flight", plan.inFlight())
        .with("lookups", plan.lookups())
        .with("repeat", plan.repeat())
        .with("warmup", plan.warmup())
        .with("limit_threads", plan.threads())
        .with("measures", result.measures.stream().map(BenchMeasure::data).toList())
        .with("calls", BenchCalls.COLUMNS.data(result.calls));
  }

  public static void print(PrintWriter out, double loadBefore, List<Result> results) {
    results.forEach(result -> print(out, result));
    printMachine(out, loadBefore);
    out.println(
        "RATIO is ours by the limit, pair by pair within a round; over 1 is faster than the plain"
            + " calls.");
    out.println(
        "The limits move the same segments with FileChannel and memcpy of Java, on as many threads"
            + " as said, which do not sleep; files are one a block, not synced.");
    out.println(
        "ALLOCATED is heap of all threads of the process, by ThreadMXBean."
            + "getTotalThreadAllocatedBytes. Every loaded byte was compared.");
  }

  private static void print(PrintWriter out, Result result) {
    BenchPlan plan = result.plan;
    out.printf(
        Locale.ROOT,
        "%s%s: blocks of %.2f MiB, %d shard(s) of %d tensor(s) of %.1f KiB; %d rounds of %d blocks,"
            + " %s, %d task(s) at a time; limits on %d thread(s), in the same steps%n%n",
        plan.config().pipeline(),
        plan.direct() ? " (io_direct)" : "",
        plan.layout().blockSize() / Figures.MIB,
        plan.layout().shardCount(),
        plan.layout().tensorCount(),
        plan.layout().tensorSize(0) / 1024.0,
        plan.repeat(),
        plan.blocks(),
        plan.layerwise() ? "a shard of each a task" : plan.taskBlocks() + " a task",
        plan.inFlight(),
        plan.threads());
    SPEEDS.table(result.measures).printSection(out);
    BenchCalls.COLUMNS.table(result.calls).printSection(out);
  }

  private static String speed(double value) {
    return Figures.fixed(value, value < 1000 ? 2 : 0);
  }
}
