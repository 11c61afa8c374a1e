package ucm.pipeline.connector.engine;

import java.util.BitSet;
import java.util.function.IntUnaryOperator;
import ucm.api.TransferResult;

/**
 * The engine's blocks that could not be loaded, and why. Not thread-safe.
 *
 * @param blocks all of them
 * @param corrupt those of which a part was found damaged
 * @param gone those of which the store lacked a part
 */
public record FailedLoads(BitSet blocks, BitSet corrupt, BitSet gone) {

  /** None. */
  public FailedLoads() {
    this(new BitSet(), new BitSet(), new BitSet());
  }

  /**
   * Adds those of a load that has ended.
   *
   * @param blockOf the engine's block of each shard of it
   */
  public void add(TransferResult result, IntUnaryOperator blockOf) {
    BitSet shards = result.failedShards();
    for (int shard = shards.nextSetBit(0); shard >= 0; shard = shards.nextSetBit(shard + 1)) {
      int block = blockOf.applyAsInt(shard);
      blocks.set(block);
      switch (result.outcome(shard)) {
        case CORRUPT -> corrupt.set(block);
        case MISSING -> gone.set(block);
        default -> {}
      }
    }
  }

  /** None again. */
  public void clear() {
    blocks.clear();
    corrupt.clear();
    gone.clear();
  }
}
