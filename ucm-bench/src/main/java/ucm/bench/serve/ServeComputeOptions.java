package ucm.bench.serve;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.bench.simulator.ComputeModel;
import ucm.cli.model.GpuOptions;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;

/** How long the simulated engine computes: a rate that was measured elsewhere, or operations of a model. */
public final class ServeComputeOptions {

  private static final String DEFAULT_GPU = "h100";

  @Mixin private GpuOptions gpu = new GpuOptions();

  @Option(
      names = "--ms-per-token",
      paramLabel = "MS",
      description =
          "prefill of a token, as you measured it on your engine; instead of a model on a GPU,"
              + " which is an h100 unless another is named")
  private @Nullable Double millisPerToken;

  @Option(
      names = "--gpus",
      paramLabel = "N",
      description = "GPUs that compute together (default: ${DEFAULT-VALUE})")
  private int gpus = 4;

  @Option(
      names = "--decode-ms",
      paramLabel = "MS",
      defaultValue = "20",
      description = "least time of a step that generates a token (default: ${DEFAULT-VALUE})")
  private double decodeMillis;

  public ComputeModel of(KvModel model) {
    boolean _ = gpu.given("--ms-per-token", millisPerToken != null);
    UsageException.within("--decode-ms", decodeMillis, 0, 60_000);
    UsageException.within("--ms-per-token", millisPerToken, 0, 1000);
    UsageException.within("--gpus", gpus, 1, 1024);
    return millisPerToken != null
        ? ComputeModel.measured(millisPerToken, decodeMillis)
        : ComputeModel.operations(
            model,
            gpus * gpu.operationsPerSecond(DEFAULT_GPU),
            gpus + " x " + gpu.text(DEFAULT_GPU),
            decodeMillis);
  }
}
