package ucm.lite.tier;

import java.util.List;

/**
 * What a model leaves in the KV cache for each token, and what computing a token costs.
 *
 * @param name under which the model is published
 * @param layers layers that keep keys and values
 * @param latent whether a layer keeps one latent a token that all heads share (MLA) instead of keys
 *     and values by head
 * @param kvHeads heads of keys and values; 1 with a latent
 * @param headValues values of a head in one tensor; with a latent, of the latent and its rotary part
 * @param valueBytes bytes of a value
 * @param activeParameters parameters of the layers that work on a token, without embeddings
 * @param attentionWidth query heads x head size: a token that looks at n others costs {@code 4 x
 *     attentionWidth x n} operations in a layer
 * @param notes what about the configuration is not in these numbers; for people
 */
public record KvModel(
    String name,
    int layers,
    boolean latent,
    int kvHeads,
    int headValues,
    int valueBytes,
    double activeParameters,
    long attentionWidth,
    List<String> notes) {

  public KvModel {
    notes = List.copyOf(notes);
  }

  /** The tensors a layer keeps: 2 (keys and values), or 1 with a latent. */
  public int tensorsPerLayer() {
    return latent ? 1 : 2;
  }

  /** Bytes that a token takes in one tensor of one layer, over all heads. */
  public int bytesPerTokenAndTensor() {
    return kvHeads * headValues * valueBytes;
  }

  /**
   * Bytes that a token takes on one rank of a tensor-parallel group. Heads are divided; a rank has
   * at least one, and a latent is on every rank.
   */
  public long bytesPerTokenAndRank(int tensorParallel) {
    int heads = latent ? 1 : (kvHeads + tensorParallel - 1) / tensorParallel;
    return (long) layers * tensorsPerLayer() * heads * headValues * valueBytes;
  }

  /**
   * Bytes that a token takes in a store. Each rank stores its own part, a head that is on several
   * ranks several times; a latent is stored once.
   */
  public long storedBytesPerToken(int tensorParallel) {
    return bytesPerTokenAndRank(tensorParallel) * (latent ? 1 : tensorParallel);
  }

  /**
   * Floating-point operations of a prefill from some tokens, whose keys and values are there, to
   * the end of the prompt: two for each parameter and token, and attention to all tokens before.
   */
  public double prefillOperations(long from, long to) {
    double attention = 2.0 * layers * attentionWidth * ((double) to * to - (double) from * from);
    return 2 * activeParameters * (to - from) + attention;
  }
}
