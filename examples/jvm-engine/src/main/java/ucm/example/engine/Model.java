package ucm.example.engine;

import java.util.SplittableRandom;

/**
 * A decoder-only transformer with random weights: RMS norm, rotary positions, grouped-query
 * attention, a gated feed-forward part. It says nothing sensible, but every number depends on every
 * token before it, through the KV cache, as in a real model.
 *
 * <p>Each token is computed by itself and every sum in a fixed order, with {@link StrictMath}, so the
 * same tokens and the same KV cache give the same bits on any machine, however the prompt is cut into
 * steps. An engine on a GPU promises less.
 */
final class Model {

  private static final float EPSILON = 1e-5f;
  private static final double ROTARY_BASE = 10_000;

  // These are never compared.
  @SuppressWarnings("ArrayRecordComponent")
  private record Layer(
      float[][] query,
      float[][] key,
      float[][] value,
      float[][] output,
      float[][] gate,
      float[][] up,
      float[][] down) {}

  private final String name;
  private final ModelShape shape;
  private final float[][] embedding;
  private final float[][] head;
  private final Layer[] layers;

  /** The same seed gives the same model. */
  Model(ModelShape shape, long seed) {
    this.name = "example-" + seed + "/" + shape;
    this.shape = shape;
    SplittableRandom random = new SplittableRandom(seed);
    int width = shape.width();
    this.embedding = matrix(random, shape.vocabulary(), width);
    this.head = matrix(random, shape.vocabulary(), width);
    this.layers = new Layer[shape.layers()];
    for (int i = 0; i < layers.length; i++) {
      layers[i] =
          new Layer(
              matrix(random, width, width),
              matrix(random, shape.kvWidth(), width),
              matrix(random, shape.kvWidth(), width),
              matrix(random, width, width),
              matrix(random, shape.feedForward(), width),
              matrix(random, shape.feedForward(), width),
              matrix(random, width, shape.feedForward()));
    }
  }

  /** Names these weights; part of the id of every block, so other weights must have other names. */
  String name() {
    return name;
  }

  ModelShape shape() {
    return shape;
  }

  /** The state of a token before the first layer. */
  float[] embed(int token) {
    return embedding[token].clone();
  }

  /**
   * Computes a layer for one token: puts its keys and values into the cache, and attends to all tokens
   * up to it, whose keys and values must be there.
   *
   * @param state of the token; changed in place
   */
  void layer(int index, float[] state, PagedKvCache cache, int[] table, int position) {
    Layer layer = layers[index];
    float[] in = norm(state);
    float[] query = rotate(multiply(layer.query(), in), position);
    float[] key = rotate(multiply(layer.key(), in), position);
    cache.put(index, table, position, key, multiply(layer.value(), in));
    add(state, multiply(layer.output(), attend(index, query, cache, table, position)));
    float[] inner = norm(state);
    float[] gate = multiply(layer.gate(), inner);
    float[] up = multiply(layer.up(), inner);
    for (int i = 0; i < gate.length; i++) {
      gate[i] = (float) (gate[i] / (1 + StrictMath.exp(-gate[i]))) * up[i];
    }
    add(state, multiply(layer.down(), gate));
  }

  /** How likely each token of the vocabulary comes next, after the last layer. */
  float[] logits(float[] state) {
    return multiply(head, norm(state));
  }

  private float[] attend(int layer, float[] query, PagedKvCache cache, int[] table, int position) {
    int size = shape.headSize();
    int sharing = shape.heads() / shape.kvHeads();
    float[] out = new float[shape.width()];
    double[] weights = new double[position + 1];
    for (int head = 0; head < shape.heads(); head++) {
      int from = head / sharing * size;
      double most = Double.NEGATIVE_INFINITY;
      for (int p = 0; p <= position; p++) {
        double score = 0;
        for (int i = 0; i < size; i++) {
          score += query[head * size + i] * cache.key(layer, table, p, from + i);
        }
        weights[p] = score / StrictMath.sqrt(size);
        most = Math.max(most, weights[p]);
      }
      double sum = 0;
      for (int p = 0; p <= position; p++) {
        weights[p] = StrictMath.exp(weights[p] - most);
        sum += weights[p];
      }
      for (int i = 0; i < size; i++) {
        double value = 0;
        for (int p = 0; p <= position; p++) {
          value += weights[p] * cache.value(layer, table, p, from + i);
        }
        out[head * size + i] = (float) (value / sum);
      }
    }
    return out;
  }

  /** Rotary position embedding (Su et al. 2021): turns each pair of numbers by its own angle. */
  private float[] rotate(float[] heads, int position) {
    int size = shape.headSize();
    for (int i = 0; i < heads.length; i += 2) {
      double angle = position / StrictMath.pow(ROTARY_BASE, (double) (i % size) / size);
      double cos = StrictMath.cos(angle);
      double sin = StrictMath.sin(angle);
      float a = heads[i];
      float b = heads[i + 1];
      heads[i] = (float) (a * cos - b * sin);
      heads[i + 1] = (float) (a * sin + b * cos);
    }
    return heads;
  }

  private static float[] norm(float[] state) {
    double sum = 0;
    for (float x : state) {
      sum += (double) x * x;
    }
    float scale = (float) (1 / StrictMath.sqrt(sum / state.length + EPSILON));
    float[] out = new float[state.length];
    for (int i = 0; i < out.length; i++) {
      out[i] = state[i] * scale;
    }
    return out;
  }

  private static float[] multiply(float[][] matrix, float[] in) {
    float[] out = new float[matrix.length];
    for (int row = 0; row < out.length; row++) {
      float sum = 0;
      float[] weights = matrix[row];
      for (int i = 0; i < in.length; i++) {
        sum += weights[i] * in[i];
      }
      out[row] = sum;
    }
    return out;
  }

  private static void add(float[] to, float[] more) {
    for (int i = 0; i < to.length; i++) {
      to[i] += more[i];
    }
  }

  private static float[][] matrix(SplittableRandom random, int rows, int columns) {
    float scale = (float) (1 / StrictMath.sqrt(columns));
    float[][] matrix = new float[rows][columns];
    for (float[] row : matrix) {
      for (int i = 0; i < columns; i++) {
        row[i] = (float) (random.nextDouble(-1.7, 1.7) * scale);
      }
    }
    return matrix;
  }
}
