package ucm.example.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import ucm.api.MemoryRegion;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;

/**
 * The engine's KV cache: for each layer a tensor of keys and one of values, cut into blocks of some
 * tokens. A request's block table says which blocks hold its tokens, in order, so that memory is
 * given out block by block.
 *
 * <p>This is the memory that UCM copies from and to. It lives outside the Java heap, in a shared arena,
 * because the threads of the stores use it.
 */
final class PagedKvCache implements AutoCloseable {

  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

  private final Arena arena = Arena.ofShared();
  private final int blockTokens;
  private final int width;

  /** Of each layer, the keys and the values. */
  private final List<List<MemorySegment>> layers = new ArrayList<>();

  PagedKvCache(ModelShape shape, int blockTokens, int blocks) {
    this.blockTokens = blockTokens;
    this.width = shape.kvWidth();
    long bytes = (long) blocks * blockTokens * width * Float.BYTES;
    for (int layer = 0; layer < shape.layers(); layer++) {
      layers.add(List.of(arena.allocate(bytes, 4096), arena.allocate(bytes, 4096)));
    }
  }

  /** How many bytes one block takes in each tensor: what UCM must know before it is opened. */
  static KvLayout layout(ModelShape shape, int blockTokens) {
    long bytes = (long) blockTokens * shape.kvWidth() * Float.BYTES;
    return KvLayout.uniform(shape.layers(), bytes, bytes);
  }

  /** The tensors as UCM wants them registered: keys before values, layer by layer. */
  KvCaches register() {
    long blockBytes = (long) blockTokens * width * Float.BYTES;
    return new KvCaches(
        layers.stream()
            .map(tensors -> tensors.stream().map(memory -> tensor(memory, blockBytes)).toList())
            .toList());
  }

  private static KvTensor tensor(MemorySegment memory, long blockBytes) {
    return KvTensor.dense(MemoryRegion.host(memory), blockBytes);
  }

  /** Keeps the keys and values of the token at a position. */
  void put(int layer, int[] table, int position, float[] key, float[] value) {
    long at = at(table, position);
    MemorySegment.copy(key, 0, layers.get(layer).getFirst(), FLOAT, at, width);
    MemorySegment.copy(value, 0, layers.get(layer).getLast(), FLOAT, at, width);
  }

  /** One number of the keys of the token at a position. */
  float key(int layer, int[] table, int position, int i) {
    return layers.get(layer).getFirst().get(FLOAT, at(table, position) + (long) i * Float.BYTES);
  }

  /** One number of the values of the token at a position. */
  float value(int layer, int[] table, int position, int i) {
    return layers.get(layer).getLast().get(FLOAT, at(table, position) + (long) i * Float.BYTES);
  }

  private long at(int[] table, int position) {
    long slot = (long) table[position / blockTokens] * blockTokens + position % blockTokens;
    return slot * width * Float.BYTES;
  }

  /** Frees the memory; the worker side of UCM must be closed before. */
  @Override
  public void close() {
    arena.close();
  }
}
