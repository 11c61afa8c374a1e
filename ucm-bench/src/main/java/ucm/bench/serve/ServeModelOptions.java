package ucm.bench.serve;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.bench.simulator.ComputeModel;
import ucm.cli.model.GpuOptions;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

/**
 * Which model the simulated engine serves: how many bytes it leaves in the KV cache, and how long the
 * engine computes, by a rate that was measured elsewhere or by the operations of the model.
 */
public final class ServeModelOptions {

  private static final String DEFAULT_MODEL = "qwq-32b";
  private static final String DEFAULT_GPU = "h100";
  private static final String DTYPE = "torch.bfloat16";

  @Mixin private ModelOptions models = new ModelOptions();

  @Option(
      names = "--bytes-per-token",
      paramLabel = "BYTES",
      description = "KV cache of a token, all ranks together (default: the model's own)")
  private @Nullable Long bytesPerToken;

  @Option(
      names = "--layers",
      paramLabel = "N",
      description =
          "layers that --bytes-per-token is spread over (default: ${DEFAULT-VALUE}); without it the"
              + " model's")
  private int layers = 16;

  @Option(
      names = "--block-tokens",
      paramLabel = "N",
      description = "tokens of a block (default: ${DEFAULT-VALUE})")
  private int blockTokens = 128;

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

  /** The model that is served: the one named, or that of the original's table. */
  private KvModel model() {
    return models.model().orElseGet(() -> KvModels.named(DEFAULT_MODEL, "").orElseThrow());
  }

  public EngineSpec spec() {
    KvModel model = model();
    int ranks = models.tensorParallel();
    Long given = bytesPerToken;
    boolean own = given == null;
    int count = own ? model.layers() : layers;
    int parts = model.latent() ? 1 : ranks;
    UsageException.within("--layers", count, 1, 1024);
    UsageException.within("--block-tokens", blockTokens, 1, 8192);
    long bytes = given == null ? model.storedBytesPerToken(ranks) : given;
    long segments = (long) count * model.tensorsPerLayer();
    UsageException.when(
        !own && (bytes < 1 || bytes > 1 << 24 || bytes % (segments * parts) != 0),
        String.format(
            "--bytes-per-token is a multiple of layers x tensors x ranks, here %s, and at most"
                + " 16777216; found %s",
            segments * parts, bytes));
    long[] tensors = new long[model.tensorsPerLayer()];
    Arrays.fill(tensors, bytes / parts / segments * blockTokens);
    return new EngineSpec(
        "ucm-bench-serve-" + ProcessHandle.current().pid(),
        model.name(),
        DTYPE,
        ranks,
        model.latent(),
        blockTokens,
        KvLayout.uniform(count, tensors));
  }

  /** What a token takes in the store, of all ranks together. */
  public long storedBytesPerToken(EngineSpec spec) {
    return spec.parts() * spec.kv().blockLayout().blockSize() / spec.blockTokens();
  }

  long modelBytesPerToken() {
    return model().storedBytesPerToken(models.tensorParallel());
  }

  public ComputeModel compute() {
    boolean _ = gpu.given("--ms-per-token", millisPerToken != null);
    UsageException.within("--decode-ms", decodeMillis, 0, 60_000);
    UsageException.within("--ms-per-token", millisPerToken, 0, 1000);
    UsageException.within("--gpus", gpus, 1, 1024);
    return millisPerToken != null
        ? ComputeModel.measured(millisPerToken, decodeMillis)
        : ComputeModel.operations(
            model(),
            gpus * gpu.operationsPerSecond(DEFAULT_GPU),
            gpus + " x " + gpu.text(DEFAULT_GPU),
            decodeMillis);
  }
}
