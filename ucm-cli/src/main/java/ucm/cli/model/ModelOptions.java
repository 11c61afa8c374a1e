package ucm.cli.model;

import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;
import ucm.lite.trace.TraceException;

/** Which model a command computes with: one that is built in, or a config.json. */
public final class ModelOptions {

  @Option(
      names = "--model",
      paramLabel = "NAME",
      description = "model whose KV cache is meant; `ucm calc` lists those built in")
  private String name = "";

  @Option(
      names = "--model-config",
      paramLabel = "FILE",
      description = "the config.json of another model")
  private @Nullable Path config;

  @Option(
      names = "--kv-dtype",
      paramLabel = "TYPE",
      description = "data type of the KV cache, such as bf16 or fp8 (default: the model's)")
  private String kvType = "";

  @Option(
      names = "--tp",
      paramLabel = "RANKS",
      description = "tensor-parallel ranks of an engine (default: ${DEFAULT-VALUE})")
  private int tensorParallel = 1;

  private static String names() {
    return String.join(", ", KvModels.names());
  }

  /** A model that is built in, by its short or full name, in any case. */
  public static KvModel named(String name) {
    return KvModels.named(name, "")
        .orElseThrow(
            () -> new UsageException("no model " + name + " is known here; known are " + names()));
  }

  /** The model; empty when none was named. */
  public Optional<KvModel> model() {
    UsageException.within("--tp", tensorParallel, 1, 1024);
    if (config != null) {
      UsageException.when(!name.isEmpty(), "--model and --model-config exclude each other");
      try {
        return Optional.of(KvModels.read(config, kvType));
      } catch (TraceException e) {
        throw new UsageException("--model-config: " + e.getMessage());
      }
    }
    if (name.isEmpty()) {
      return Optional.empty();
    }
    Optional<KvModel> known = KvModels.named(name, kvType);
    UsageException.when(
        known.isEmpty(),
        String.format(
            "no model %s is known here; known are %s; for others give --model-config with the"
                + " model's config.json",
            name, names()));
    return known;
  }

  /** The model; wrong usage when none was named. */
  public KvModel required() {
    return model()
        .orElseThrow(
            () ->
                new UsageException(
                    "name a model with --model (" + names() + ") or --model-config FILE"));
  }

  /** The data type asked for; empty for the model's own. */
  String kvType() {
    return kvType;
  }

  public int tensorParallel() {
    return tensorParallel;
  }
}
