package ucm.bench.serve;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

/** Which model the simulated engine serves, and how many bytes it leaves in the KV cache. */
public final class ServeKvOptions {

  private static final String DEFAULT_MODEL = "qwq-32b";
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

  /** The model that is served: the one named, or that of the original's table. */
  public KvModel model() {
    return models.model().orElseGet(() -> KvModels.named(DEFAULT_MODEL, "").orElseThrow());
  }

  public EngineSpec spec() {
    KvModel model = model();
    int ranks = models.tensorParallel();
    boolean own = bytesPerToken == null;
    int count = own ? model.layers() : layers;
    int parts = model.latent() ? 1 : ranks;
    UsageException.within("--layers", count, 1, 1024);
    UsageException.within("--block-tokens", blockTokens, 1, 8192);
    long bytes = bytesPerToken == null ? 0 : bytesPerToken;
    long ofRank = own ? model.bytesPerTokenAndRank(ranks) : bytes / parts;
    long segments = (long) count * model.tensorsPerLayer();
    UsageException.when(
        !own && (bytes < 1 || bytes > 1 << 24 || bytes % (segments * parts) != 0),
        String.format(
            "--bytes-per-token is a multiple of layers x tensors x ranks, here %s, and at most"
                + " 16777216; found %s",
            segments * parts, bytes));
    long[] tensors = new long[model.tensorsPerLayer()];
    Arrays.fill(tensors, ofRank / segments * blockTokens);
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

  /** What the model itself leaves. */
  long modelBytesPerToken() {
    return model().storedBytesPerToken(models.tensorParallel());
  }
}
