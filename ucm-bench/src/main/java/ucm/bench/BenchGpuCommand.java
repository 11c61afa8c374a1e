package ucm.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.bench.gpu.GpuBench;
import ucm.bench.gpu.GpuShape;
import ucm.bench.measure.BenchReport;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.runtime.Room;
import ucm.device.Device;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** {@code ucm bench gpu}: copies between a GPU and the pool beside plain copies of the driver. */
@Command(
    name = "gpu",
    description = {
      "Measures copies between a GPU and the host: through the buffer pool, and by each way of the"
          + " driver; each direction alone and both at once. Beside each figure is one plain pinned"
          + " copy of as many bytes at the same moment. Every byte is compared.",
      "",
      "Shapes are layers of 64 KiB to 4 MiB, in one segment and in several that lie apart. Needs an"
          + " NVIDIA driver and nothing else; writes no file."
    })
final class BenchGpuCommand extends JsonCommand {

  private static final long MIB = 1 << 20;

  private static final Columns<GpuBench.Result> COLUMNS =
      new Columns<GpuBench.Result>()
          .text("SHAPE", row -> row.shape().text())
          .text("WAY", GpuBench.Result::way)
          .text("DIRECTION", row -> row.measure().name())
          .text("GB/S", row -> Figures.plain(row.measure().values().median()))
          .text("MIN", row -> Figures.plain(row.measure().values().min()))
          .text("MAX", row -> Figures.plain(row.measure().values().max()))
          .text("PLAIN GB/S", row -> Figures.plain(row.measure().limits().median()))
          .text("RATIO", row -> Figures.plain(row.measure().ratios().median()))
          .text("MIN", row -> Figures.plain(row.measure().ratios().min()))
          .text("MAX", row -> Figures.plain(row.measure().ratios().max()))
          .text("QUEUEING US", row -> Figures.plain(row.queueingMicros().median()));

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--device",
      paramLabel = "N",
      description = "which GPU, from 0 (default: ${DEFAULT-VALUE})")
  private int deviceId = 0;

  @Option(
      names = "--round-mb",
      paramLabel = "MIB",
      description =
          "how much a round moves; three times that is taken on the GPU, six times on the host"
              + " (default: ${DEFAULT-VALUE})")
  private int roundMib = 256;

  @Option(
      names = "--streams",
      paramLabel = "N",
      description = "cache_stream_number of the pool (default: ${DEFAULT-VALUE})")
  private int streams = 4;

  @Option(
      names = "--repeat",
      paramLabel = "N",
      description = "rounds that count; fewer than 7 say little (default: ${DEFAULT-VALUE})")
  private int repeat = 15;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description = "rounds before them (default: ${DEFAULT-VALUE})")
  private int warmup = 3;

  @Override
  public void run() throws InterruptedException {
    UsageException.atLeast("--device", deviceId, 0);
    UsageException.atLeast("--round-mb", roundMib, 8);
    UsageException.atLeast("--streams", streams, 1);
    UsageException.atLeast("--repeat", repeat, 1);
    UsageException.atLeast("--warmup", warmup, 0);
    Room.inMemory("the benchmark needs", 6L * roundMib * MIB, "--round-mb");
    DeviceDriver driver =
        DeviceDriver.find("cuda")
            .orElseThrow(
                () ->
                    new DeviceException(
                        "this image has no part for CUDA (module ucm.device.cuda): use the one with"
                            + " it"));
    double loadBefore = BenchReport.loadAverage();
    List<GpuBench.Result> results = new ArrayList<>();
    DeviceInfo info;
    try (Device device = driver.open(deviceId)) {
      info = device.info();
      GpuBench bench = new GpuBench(device, plugins.catalog(), streams);
      for (GpuShape shape : GpuShape.ALL) {
        try (Progress progress = new Progress("bench gpu " + shape.text(), warmup + repeat)) {
          results.addAll(bench.run(shape, roundMib * MIB, warmup, repeat, progress));
        }
      }
    }
    Fields machine = machine(info, loadBefore);
    print(
        () ->
            new Fields()
                .with("machine", machine)
                .with("results", results.stream().map(GpuBench.Result::data).toList()),
        () -> show(machine, results));
  }

  private void show(Fields machine, List<GpuBench.Result> results) {
    PrintWriter out = out();
    COLUMNS.table(results).printSection(out);
    machine.forEach((name, value) -> out.println(name + ": " + value));
    out.println(
        "RATIO is by plain, pair by pair. Plain is one copy of all bytes in pinned memory of the"
            + " driver, or one in each direction at once; pool is Cache, calls has a call for each"
            + " segment, batch one call for many, rows one for all. QUEUEING is the time until all"
            + " was handed over, by the segments. Every byte was compared.");
  }

  private Fields machine(DeviceInfo info, double loadBefore) {
    return new Fields()
        .with("gpu", info.name())
        .with("gpu_memory_bytes", info.memoryBytes())
        .with("driver", info.driver())
        .with("processor", processor())
        .with("processors", Runtime.getRuntime().availableProcessors())
        .with("system", System.getProperty("os.name") + " " + System.getProperty("os.version"))
        .with("java", Runtime.version().toString())
        .with("round_mib", roundMib)
        .with("rounds", repeat)
        .with("streams", streams)
        .with("load_average_before", loadBefore)
        .with("load_average_after", BenchReport.loadAverage());
  }

  /** What the processor's maker calls it, as Linux knows it. */
  private static String processor() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"))) {
      return lines
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElse("unknown");
    } catch (IOException e) {
      return "unknown";
    }
  }
}
