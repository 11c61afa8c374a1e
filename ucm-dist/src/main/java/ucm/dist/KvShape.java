package ucm.dist;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;
import ucm.api.BlockLayout;

/**
 * The KV cache of known models: how many bytes a token leaves in each layer.
 *
 * <p>The numbers are those of each model's published {@code config.json}: layers ({@code
 * num_hidden_layers}), tensors a layer (keys and values for grouped-query attention, one latent for
 * multi-head latent attention), and bytes of a token in each tensor (KV heads x head size x bytes of
 * the data type).
 */
enum KvShape {
  /** 24 layers, 2 KV heads of 64, bfloat16. */
  QWEN2_5_0_5B("Qwen/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b", 24, 2, 2 * 64 * 2),
  /** 28 layers, 4 KV heads of 128, bfloat16. */
  QWEN2_5_7B("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b", 28, 2, 4 * 128 * 2),
  /** 48 layers, 8 KV heads of 128, bfloat16. */
  QWEN2_5_14B("Qwen/Qwen2.5-14B-Instruct", "qwen2.5-14b", 48, 2, 8 * 128 * 2),
  /** 64 layers, 8 KV heads of 128, bfloat16. */
  QWQ_32B("Qwen/QwQ-32B", "qwq-32b", 64, 2, 8 * 128 * 2),
  /** 32 layers, 8 KV heads of 128, bfloat16. */
  LLAMA_3_1_8B("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b", 32, 2, 8 * 128 * 2),
  /** 61 layers, one latent of 512 and its rotary part of 64, bfloat16. */
  DEEPSEEK_R1("deepseek-ai/DeepSeek-R1", "deepseek-r1", 61, 1, (512 + 64) * 2);

  private final String modelName;
  private final String shortName;
  private final int layers;
  private final int tensorsPerLayer;
  private final int bytesPerTokenAndTensor;

  KvShape(
      String modelName,
      String shortName,
      int layers,
      int tensorsPerLayer,
      int bytesPerTokenAndTensor) {
    this.modelName = modelName;
    this.shortName = shortName;
    this.layers = layers;
    this.tensorsPerLayer = tensorsPerLayer;
    this.bytesPerTokenAndTensor = bytesPerTokenAndTensor;
  }

  /** The shape of a model by its short or full name, in any case. */
  static KvShape of(String name) {
    for (KvShape shape : values()) {
      if (name.equalsIgnoreCase(shape.shortName) || name.equalsIgnoreCase(shape.modelName)) {
        return shape;
      }
    }
    throw new UsageException("no model " + name + " is known here; known are " + names());
  }

  /** The short names of all shapes. */
  static String names() {
    return Arrays.stream(values()).map(shape -> shape.shortName).collect(Collectors.joining(", "));
  }

  /** The layout of a block of some tokens, a shard for each layer. */
  BlockLayout layout(int blockTokens) {
    long tensor = (long) blockTokens * bytesPerTokenAndTensor;
    long shard = tensorsPerLayer * tensor;
    return BlockLayout.uniform(tensor, shard, layers * shard);
  }

  /** The name under which the model is published; part of what block ids are hashed from. */
  String modelName() {
    return modelName;
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s: %d layers, %d tensor(s) a layer, %d bytes a token and tensor",
        modelName,
        layers,
        tensorsPerLayer,
        bytesPerTokenAndTensor);
  }
}
