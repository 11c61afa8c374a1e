package ucm.bench.measure;

/**
 * What one task of a benchmark moves: a stretch of each of some blocks.
 *
 * @param from first block, inclusive
 * @param to last block, exclusive
 * @param shard the shard of each block, or {@link #ALL_SHARDS}
 * @param offset where in the block the stretch starts, in bytes
 * @param length of the stretch
 */
public record BenchStep(int from, int to, int shard, long offset, long length) {

  public static final int ALL_SHARDS = -1;
}
