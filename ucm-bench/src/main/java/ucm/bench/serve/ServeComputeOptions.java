package ucm.bench.serve;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.bench.simulator.ComputeModel;
import ucm.cli.model.GpuRate;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;

/** How long the simulated engine computes: a rate that was measured elsewhere, or operations of a model. */
public final class ServeComputeOptions {

  private static final double TERA = 1e12;

  @Option(
      names = "--ms-per-token",
      paramLabel = "MS",
      description =
          "prefill of a token, as you measured it on your engine; instead of a model on a GPU")
  private @Nullable Double millisPerToken;

  @Option(
      names = "--gpu",
      paramLabel = "NAME",
      description =
          "GPU that the model is taken to run on: a10, a100, h20, h100, h200, l20, l40s, b200"
              + " (default: h100)")
  private @Nullable String gpu;

  @Option(
      names = "--tflops",
      paramLabel = "N",
      description = "BF16 operations a second of another GPU, in units of 10^12")
  private @Nullable Double tflops;

  @Option(
      names = "--gpus",
      paramLabel = "N",
      description = "GPUs that compute together (default: ${DEFAULT-VALUE})")
  private int gpus = 4;

  @Option(
      names = "--mfu",
      paramLabel = "SHARE",
      description = "share of the GPU's peak that prefill reaches (default: ${DEFAULT-VALUE})")
  private double utilization = 0.5;

  @Option(
      names = "--decode-ms",
      paramLabel = "MS",
      defaultValue = "20",
      description = "least time of a step that generates a token (default: ${DEFAULT-VALUE})")
  private double decodeMillis;

  public ComputeModel of(KvModel model) {
    int rates = (millisPerToken == null ? 0 : 1) + (gpu == null ? 0 : 1) + (tflops == null ? 0 : 1);
    UsageException.when(rates > 1, "--gpu, --tflops and --ms-per-token exclude each other");
    require("--decode-ms", decodeMillis, 0, 60_000);
    if (millisPerToken != null) {
      return ComputeModel.measured(
          require("--ms-per-token", millisPerToken, 0, 1000), decodeMillis);
    }
    UsageException.when(
        !(utilization > 0 && utilization <= 1),
        "--mfu is above 0 and at most 1; found " + utilization);
    UsageException.within("--gpus", gpus, 1, 1024);
    UsageException.when(tflops != null && !(tflops > 0), "--tflops is above 0; found " + tflops);
    String name = gpu == null ? "h100" : gpu;
    double each = tflops != null ? tflops * TERA : GpuRate.of(name).operationsPerSecond();
    String where =
        String.format(
            Locale.ROOT,
            "%d x %s at %.0f%% of its peak",
            gpus,
            tflops != null ? tflops + " TFLOPS" : name.toUpperCase(Locale.ROOT),
            100 * utilization);
    return ComputeModel.operations(model, each * gpus * utilization, where, decodeMillis);
  }

  private static double require(String option, double value, double least, double most) {
    if (!(value >= least && value <= most)) {
      throw new UsageException(
          String.format(Locale.ROOT, "%s is %.0f to %.0f; found %s", option, least, most, value));
    }
    return value;
  }
}
