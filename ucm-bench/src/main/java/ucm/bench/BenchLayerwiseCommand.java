package ucm.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockLayout;
import ucm.bench.measure.BenchReport;
import ucm.bench.store.LayerwiseBench;
import ucm.bench.store.LayerwiseMeasure;
import ucm.cli.output.Figures;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.HostMemory;
import ucm.cli.runtime.PluginsOption;

/** {@code ucm bench layerwise}: how much of the transfers overlaps with the compute of layers. */
@Command(
    name = "layerwise",
    description = {
      "Measures how long an engine waits for each layer when it moves its KV cache layer by layer"
          + " through Cache|Posix.",
      "",
      "Loads are handed in at the start and waited for layer by layer; dumps are handed in as"
          + " layers are computed. The compute is simulated by a pause. The ideal is a step in"
          + " which each layer takes the longer of compute and transfer, at the speed the machine's"
          + " memcpy and file reads had in the same round. Files are made in a temporary folder and"
          + " removed at the end."
    })
final class BenchLayerwiseCommand extends JsonCommand {

  private static final double MIB = 1 << 20;

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--layers",
      paramLabel = "N",
      description = "layers, each a shard (default: ${DEFAULT-VALUE})")
  private int layers = 64;

  @Option(
      names = "--blocks",
      paramLabel = "N",
      description = "blocks of a step (default: ${DEFAULT-VALUE})")
  private int blocks = 64;

  @Option(
      names = "--shard-size",
      paramLabel = "BYTES",
      description = "bytes of a layer of a block (default: ${DEFAULT-VALUE})")
  private long shardSize = 65536;

  @Option(
      names = "--compute-ms",
      paramLabel = "MS",
      split = ",",
      defaultValue = "0,0.5,1,2",
      description = "simulated compute of a layer (default: ${DEFAULT-VALUE})")
  private List<Double> computeMillis = List.of();

  @Option(
      names = "--dir",
      paramLabel = "DIR",
      description = "where to make the temporary folder (default: the system's)")
  private Path dir = Path.of(System.getProperty("java.io.tmpdir"));

  @Option(
      names = "--repeat",
      paramLabel = "N",
      description = "rounds that count (default: ${DEFAULT-VALUE})")
  private int repeat = 7;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description = "rounds before them (default: ${DEFAULT-VALUE})")
  private int warmup = 2;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "threads of the machine's limits (default: the number of processors)")
  private @Nullable Integer threads;

  @Override
  public void run() throws InterruptedException {
    BlockLayout layout = layout();
    int limitThreads = threads == null ? Runtime.getRuntime().availableProcessors() : threads;
    double loadBefore = BenchReport.loadAverage();
    try (Cleanup cleanup = new Cleanup();
        Progress progress =
            new Progress("bench layerwise", (long) (warmup + repeat) * computeMillis.size())) {
      Path folder = cleanup.folder(dir, "ucm-bench-");
      LayerwiseBench bench =
          cleanup.add(
              new LayerwiseBench(
                  plugins.catalog(), layout, blocks, folder, computeMillis, limitThreads));
      List<LayerwiseMeasure> measures = bench.run(warmup, repeat, progress);
      PrintWriter out = out();
      if (json) {
        printJson(out, loadBefore, measures);
      } else {
        print(out, loadBefore, measures);
      }
    }
  }

  private BlockLayout layout() {
    UsageException.atLeast("--layers", layers, 1);
    UsageException.atLeast("--blocks", blocks, 1);
    UsageException.atLeast("--repeat", repeat, 1);
    UsageException.atLeast("--warmup", warmup, 0);
    UsageException.atLeast("--threads", threads, 1);
    for (double millis : computeMillis) {
      UsageException.within("--compute-ms", millis, 0, 1000);
    }
    if (shardSize < 1 || shardSize > (1 << 30) / layers) {
      throw new UsageException(
          "--shard-size times --layers is 1 to 1073741824; found " + shardSize + " x " + layers);
    }
    long step = (long) blocks * layers * shardSize;
    // Pools of two stores, the engine's pages, both sides of memcpy, the buffers of the files.
    HostMemory.require("the benchmark needs", 9 * step, "--blocks, --layers or --shard-size");
    return BlockLayout.uniform(shardSize, shardSize, layers * shardSize);
  }

  private void print(PrintWriter out, double loadBefore, List<LayerwiseMeasure> measures) {
    out.printf(
        Locale.ROOT,
        "Cache|Posix: %d layers of %.1f KiB, %d blocks, %.2f MiB a layer; medians of %d rounds%n",
        layers,
        shardSize / 1024.0,
        blocks,
        blocks * shardSize / MIB,
        repeat);
    Table table =
        new Table(
            "WHAT",
            "SIMULATED COMPUTE MS",
            "STEP MS",
            "IDEAL",
            "RATIO",
            "MIN",
            "MAX",
            "WAIT A LAYER MS",
            "P90",
            "IDEAL WAIT",
            "TRANSFER AT THE LIMIT MS");
    for (LayerwiseMeasure measure : measures) {
      Spread ratios = measure.ratios();
      table.row(
          measure.name(),
          Figures.plain(measure.computeMillis()),
          Figures.plain(measure.steps().median()),
          Figures.plain(measure.ideals().median()),
          Figures.plain(ratios.median()),
          Figures.plain(ratios.min()),
          Figures.plain(ratios.max()),
          Figures.plain(measure.waits().median()),
          Figures.plain(measure.slowWait()),
          Figures.plain(measure.idealWait()),
          Figures.plain(measure.transfers().median()));
    }
    table.print(out);
    BenchReport.printMachine(out, loadBefore);
    out.println(
        "RATIO is the ideal step by the measured one, pair by pair. The wait of a dump is what is"
            + " left of it when all layers are computed.");
  }

  private void printJson(PrintWriter out, double loadBefore, List<LayerwiseMeasure> measures) {
    Map<String, Object> data = new LinkedHashMap<>();
    BenchReport.addMachine(data, loadBefore);
    data.put("layers", layers);
    data.put("blocks", blocks);
    data.put("shard_bytes", shardSize);
    data.put("rounds", repeat);
    data.put("results", measures.stream().map(LayerwiseMeasure::data).toList());
    Json.print(out, data);
  }
}
