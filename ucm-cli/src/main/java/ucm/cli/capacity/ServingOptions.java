package ucm.cli.capacity;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.ServingPlan;

/** How fast engines compute and load; without a rate of computing, times are left out. */
final class ServingOptions {

  private static final double TERA = 1e12;

  /** Peaks as their makers publish them: dense BF16 operations a second, in units of 10^12. */
  private static final Map<String, Double> PEAKS = new LinkedHashMap<>();

  static {
    PEAKS.put("a10", 125.0);
    PEAKS.put("a100", 312.0);
    PEAKS.put("h20", 148.0);
    PEAKS.put("h100", 989.0);
    PEAKS.put("h200", 989.0);
    PEAKS.put("l20", 119.5);
    PEAKS.put("l40s", 362.0);
    PEAKS.put("b200", 2250.0);
  }

  @Option(
      names = "--gpu",
      paramLabel = "NAME",
      description =
          "GPU that simulated compute runs on: a10, a100, h20, h100, h200, l20, l40s, b200")
  private String gpu = "";

  @Option(
      names = "--tflops",
      paramLabel = "N",
      description = "BF16 operations a second of another GPU, in units of 10^12")
  private @Nullable Double tflops;

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
    int rates = (gpu.isEmpty() ? 0 : 1) + (tflops == null ? 0 : 1) + (prefillRate == 0 ? 0 : 1);
    UsageException.when(rates > 1, "--gpu, --tflops and --prefill-rate exclude each other");
    UsageException.when(
        !(utilization > 0 && utilization <= 1),
        "--mfu is above 0 and at most 1; found " + utilization);
    UsageException.when(tflops != null && !(tflops > 0), "--tflops is above 0; found " + tflops);
    if (rates == 0) {
      return Optional.empty();
    }
    double operations = prefillRate == 0 ? operationsPerSecond() * tensorParallel : 0;
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

  /** What prefill reaches on the GPU. */
  private double operationsPerSecond() {
    Double peak = tflops == null ? PEAKS.get(gpu.toLowerCase(Locale.ROOT)) : tflops;
    if (peak == null) {
      throw new UsageException(
          "no GPU %s is known here; known are %s; for others give --tflops or --prefill-rate"
              .formatted(gpu, String.join(", ", PEAKS.keySet())));
    }
    return peak * TERA * utilization;
  }
}
