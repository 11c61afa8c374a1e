package ucm.bench;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockLayout;
import ucm.bench.measure.BenchReport;
import ucm.bench.store.LayerwiseBench;
import ucm.bench.store.LayerwiseMeasure;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.runtime.Room;

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

  @Mixin private RoundOptions rounds = new RoundOptions();

  @Override
  public void run() throws InterruptedException {
    BlockLayout layout = layout();
    double loadBefore = BenchReport.loadAverage();
    long steps = (long) (rounds.warmup + rounds.repeat) * computeMillis.size();
    try (Cleanup cleanup = new Cleanup();
        Progress progress = new Progress("bench layerwise", steps)) {
      Path folder = cleanup.folder(dir, "ucm-bench-");
      LayerwiseBench bench =
          new LayerwiseBench(
              cleanup, plugins.catalog(), layout, blocks, folder, computeMillis, rounds.threads);
      List<LayerwiseMeasure> measures = bench.run(rounds.warmup, rounds.repeat, progress);
      print(() -> data(loadBefore, measures), () -> show(loadBefore, measures));
    }
  }

  private BlockLayout layout() {
    UsageException.atLeast("--layers", layers, 1);
    UsageException.atLeast("--blocks", blocks, 1);
    rounds.require();
    computeMillis.forEach(millis -> UsageException.within("--compute-ms", millis, 0, 1000));
    UsageException.when(
        shardSize < 1 || shardSize > (1 << 30) / layers,
        "--shard-size times --layers is 1 to 1073741824; found " + shardSize + " x " + layers);
    long step = (long) blocks * layers * shardSize;
    // Pools of two stores, the engine's pages, both sides of memcpy.
    Room.inMemory("the benchmark needs", 8 * step, "--blocks, --layers or --shard-size");
    return BlockLayout.uniform(shardSize, shardSize, layers * shardSize);
  }

  private void show(double loadBefore, List<LayerwiseMeasure> measures) {
    out()
        .printf(
            Locale.ROOT,
            "Cache|Posix: %d layers of %.1f KiB, %d blocks, %.2f MiB a layer; medians of %d"
                + " rounds%n",
            layers,
            shardSize / 1024.0,
            blocks,
            blocks * shardSize / Figures.MIB,
            rounds.repeat);
    LayerwiseMeasure.COLUMNS.table(measures).print(out());
    BenchReport.printMachine(out(), loadBefore);
    say(
        "RATIO is the ideal step by the measured one, pair by pair. The wait of a dump is what"
            + " is left of it when all layers are computed.");
  }

  private Fields data(double loadBefore, List<LayerwiseMeasure> measures) {
    return BenchReport.addMachine(new Fields(), loadBefore)
        .with("layers", layers)
        .with("blocks", blocks)
        .with("shard_bytes", shardSize)
        .with("rounds", rounds.repeat)
        .with("results", LayerwiseMeasure.COLUMNS.data(measures));
  }
}
