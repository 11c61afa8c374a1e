package ucm.bench;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.BenchReport;
import ucm.bench.measure.Processor;
import ucm.bench.store.GpuBench;
import ucm.bench.store.GpuResult;
import ucm.bench.store.GpuShape;
import ucm.cli.output.Figures;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.HostMemory;
import ucm.cli.runtime.PluginsOption;
import ucm.device.Device;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** {@code ucm bench gpu}: copies between a GPU and the pool beside plain copies of the driver. */
@Command(
    name = "gpu",
    description = {
      "Measures copies between a GPU and the buffer pool, and beside each figure the driver's plain"
          + " pinned copy of the same sizes at the same moment. Every byte is compared.",
      "",
      "Shapes are layers of 64 KiB to 4 MiB, in one segment and in several that lie apart. Needs an"
          + " NVIDIA driver and nothing else; writes no file."
    })
final class BenchGpuCommand extends JsonCommand {

  private static final long MIB = 1 << 20;
  private static final int LEAST_MIB = 8;

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
          "how much a round moves; twice that is taken on the GPU, four times on the host (default:"
              + " ${DEFAULT-VALUE})")
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
    UsageException.atLeast("--round-mb", roundMib, LEAST_MIB);
    UsageException.atLeast("--streams", streams, 1);
    UsageException.atLeast("--repeat", repeat, 1);
    UsageException.atLeast("--warmup", warmup, 0);
    HostMemory.require("the benchmark needs", 4L * roundMib * MIB, "--round-mb");
    DeviceDriver driver =
        DeviceDriver.find("cuda")
            .orElseThrow(
                () ->
                    new DeviceException(
                        "this image has no part for CUDA (module ucm.device.cuda): use the one with"
                            + " it"));
    double loadBefore = BenchReport.loadAverage();
    List<GpuResult> results = new ArrayList<>();
    DeviceInfo info;
    try (Device device = driver.open(deviceId);
        GpuBench bench = new GpuBench(device, plugins.catalog(), streams)) {
      info = device.info();
      for (GpuShape shape : GpuShape.ALL) {
        try (Progress progress = new Progress("bench gpu " + shape.text(), warmup + repeat)) {
          results.add(bench.run(shape, roundMib * MIB, warmup, repeat, progress));
        }
      }
    }
    print(info, loadBefore, results);
  }

  private void print(DeviceInfo info, double loadBefore, List<GpuResult> results) {
    PrintWriter out = out();
    Map<String, Object> machine = machine(info, loadBefore);
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("machine", machine);
      data.put("results", results.stream().map(GpuResult::data).toList());
      Json.print(out, data);
      return;
    }
    Table table =
        new Table(
            "SHAPE",
            "WAY",
            "OURS GB/S",
            "MIN",
            "MAX",
            "PLAIN GB/S",
            "RATIO",
            "MIN",
            "MAX",
            "QUEUEING US");
    for (GpuResult result : results) {
      for (BenchMeasure measure : List.of(result.toDevice(), result.toHost())) {
        Spread ratios = measure.ratios();
        table.row(
            result.shape().text(),
            measure.name(),
            Figures.plain(measure.values().median()),
            Figures.plain(measure.values().min()),
            Figures.plain(measure.values().max()),
            Figures.plain(measure.limits().median()),
            Figures.plain(ratios.median()),
            Figures.plain(ratios.min()),
            Figures.plain(ratios.max()),
            Figures.plain(result.callMicros().median()));
      }
    }
    table.print(out);
    out.println();
    machine.forEach((name, value) -> out.println(name + ": " + value));
    out.println(
        "RATIO is ours by plain, pair by pair. Plain is one stream, pinned memory of the driver and"
            + " a call for each segment; QUEUEING is what such a call takes. Every byte was"
            + " compared.");
  }

  private Map<String, Object> machine(DeviceInfo info, double loadBefore) {
    Map<String, Object> machine = new LinkedHashMap<>();
    machine.put("gpu", info.name());
    machine.put("gpu_memory_bytes", info.memoryBytes());
    machine.put("driver", info.driver());
    machine.put("processor", Processor.model());
    machine.put("processors", Runtime.getRuntime().availableProcessors());
    machine.put("system", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    machine.put("java", Runtime.version().toString());
    machine.put("round_mib", roundMib);
    machine.put("rounds", repeat);
    machine.put("streams", streams);
    machine.put("load_average_before", loadBefore);
    machine.put("load_average_after", BenchReport.loadAverage());
    return machine;
  }
}
