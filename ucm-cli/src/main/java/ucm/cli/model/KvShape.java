package ucm.cli.model;

import java.util.Arrays;
import java.util.Locale;
import ucm.api.BlockLayout;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;
import ucm.pipeline.connector.engine.KvLayout;

/** The KV cache of a known model as blocks of a store: a shard for each layer. */
public record KvShape(KvModel model) {

  /** The shape of a model by its short or full name, in any case. */
  public static KvShape of(String name) {
    return KvModels.named(name, "")
        .map(KvShape::new)
        .orElseThrow(
            () -> new UsageException("no model " + name + " is known here; known are " + names()));
  }

  /** The short names of all shapes. */
  static String names() {
    return String.join(", ", KvModels.names());
  }

  /** The layout of a block of some tokens. */
  public BlockLayout layout(int blockTokens) {
    long tensor = (long) blockTokens * model.bytesPerTokenAndTensor();
    long shard = model.tensorsPerLayer() * tensor;
    return BlockLayout.uniform(tensor, shard, model.layers() * shard);
  }

  /** The same as an engine says it. */
  public KvLayout kv(int blockTokens) {
    long[] tensors = new long[model.tensorsPerLayer()];
    Arrays.fill(tensors, (long) blockTokens * model.bytesPerTokenAndTensor());
    return KvLayout.uniform(model.layers(), tensors);
  }

  /** The name under which the model is published; part of what block ids are hashed from. */
  public String modelName() {
    return model.name();
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s: %d layers, %d tensor(s) a layer, %d bytes a token and tensor",
        model.name(),
        model.layers(),
        model.tensorsPerLayer(),
        model.bytesPerTokenAndTensor());
  }
}
