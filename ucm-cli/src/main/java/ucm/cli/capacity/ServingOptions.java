package ucm.cli.capacity;

import java.util.Optional;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.model.GpuOptions;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.ServingPlan;

/** How fast engines compute and load; without a rate of computing, times are left out. */
final class ServingOptions {

  @Mixin private GpuOptions gpu = new GpuOptions();

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
      names = "--disk-bandwidth",
      paramLabel = "GB/S",
      defaultValue = "10",
      description = "from local disks into an engine's HBM (default: ${DEFAULT-VALUE})")
  private double diskBandwidth;

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
    boolean computes = gpu.given("--prefill-rate", prefillRate != 0);
    if (!computes && prefillRate == 0) {
      return Optional.empty();
    }
    double operations = computes ? gpu.operationsPerSecond("") * tensorParallel : 0;
    return Optional.of(
        UsageException.accepted(
            () ->
                new ServingPlan(
                    model,
                    tensorParallel,
                    prefillRate,
                    operations,
                    dramBandwidth * Figures.GB,
                    diskBandwidth * Figures.GB,
                    storageBandwidth * Figures.GB,
                    loadLatency / 1e3)));
  }
}
