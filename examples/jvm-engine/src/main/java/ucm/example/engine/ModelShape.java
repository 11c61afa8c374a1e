package ucm.example.engine;

/**
 * The sizes of a decoder-only transformer with grouped-query attention (GQA): several query heads
 * share the keys and values of one head, so the KV cache is smaller than the activations.
 *
 * @param layers decoder layers
 * @param heads query heads
 * @param kvHeads heads of keys and values; divides {@code heads}
 * @param headSize floats of a head, even
 * @param feedForward floats of the inner layer of the feed-forward part
 * @param vocabulary different tokens
 */
record ModelShape(
    int layers, int heads, int kvHeads, int headSize, int feedForward, int vocabulary) {

  /** Small enough to compute a prompt of some hundred tokens in a moment. */
  static final ModelShape SMALL = new ModelShape(4, 4, 2, 16, 128, 512);

  /** Floats of a token between the layers. */
  int width() {
    return heads * headSize;
  }

  /** Floats of a token's keys, and of its values, in one layer. */
  int kvWidth() {
    return kvHeads * headSize;
  }
}
