package ucm.cli.capacity;

import java.util.Optional;
import picocli.CommandLine.Option;
import ucm.cli.model.GpuRate;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.ServingPlan;

/** How fast engines compute and load; without a rate of computing, times are left out. */
final class ServingOptions {

  private static final double GIGA = 1e9;
  private static final double TERA = 1e12;

  @Option(
      names = "--gpu",
      paramLabel = "NAME",
      description =
          "GPU of the engines, for simulated compute: a10, a100, h20, h100, h200, l20, l40s, b200")
  private String gpu = "";

  @Option(
      names = "--tflops",
      paramLabel = "N",
      description = "BF16 operations a second of another GPU, in units of 10^12")
  private double tflops;

  @Option(
      names = "--mfu",
      paramLabel = "SHARE",
      description = "share of the GPU's peak that prefill reaches (default: ${DEFAULT-VALUE})")
  private double utilization = 0.5;

  @Option(
      names = "--prefill-rate",
      paramLabel = "TOKENS",
      description = "tokens an engine computes a second, as you measured it; instead of --gpu")
  private double prefillRate;

  @Option(
      names = "--dram-bandwidth",
      paramLabel = "GB/S",
      defaultValue = "50",
      description = "from DRAM into an engine's HBM (default: ${DEFAULT-VALUE})")
  private double dramBandwidth;

  @Option(
      names = "--storage-bandwidth",
      paramLabel = "GB/S",
      defaultValue = "5",
      description = "from storage into an engine's HBM (default: ${DEFAULT-VALUE})")
  private double storageBandwidth;

  @Option(
      names = "--load-latency",
      paramLabel = "MS",
      defaultValue = "5",
      description = "that a load takes whatever its size (default: ${DEFAULT-VALUE})")
  private double loadLatency;

  /** The plan; empty when no rate of computing was given. */
  Optional<ServingPlan> plan(KvModel model, int tensorParallel) {
    int rates = (gpu.isEmpty() ? 0 : 1) + (tflops != 0 ? 1 : 0) + (prefillRate != 0 ? 1 : 0);
    UsageException.when(rates > 1, "--gpu, --tflops and --prefill-rate exclude each other");
    UsageException.when(
        !(utilization > 0 && utilization <= 1),
        "--mfu is above 0 and at most 1; found " + utilization);
    if (rates == 0) {
      return Optional.empty();
    }
    double operations = gpu.isEmpty() ? tflops * TERA : GpuRate.of(gpu).operationsPerSecond();
    try {
      return Optional.of(
          new ServingPlan(
              model,
              tensorParallel,
              prefillRate,
              operations * utilization * tensorParallel,
              dramBandwidth * GIGA,
              storageBandwidth * GIGA,
              loadLatency / 1e3));
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }
}
