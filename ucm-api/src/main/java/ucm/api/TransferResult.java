package ucm.api;

import java.util.BitSet;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** How a transfer ended, shard by shard. Immutable. */
public final class TransferResult {

  private final Transfer transfer;
  // Null where a shard ended well, and altogether when all did.
  private final @Nullable ShardOutcome @Nullable [] faults;
  private final int failedCount;
  private final @Nullable Throwable cause;

  /**
   * Takes over the outcomes of a transfer.
   *
   * @param faults how each shard ended that did not end well, at its index, or null when there is
   *     none; not changed any more
   * @param cause the first fault, or null when there was none
   */
  TransferResult(
      Transfer transfer, @Nullable ShardOutcome @Nullable [] faults, @Nullable Throwable cause) {
    this.transfer = transfer;
    this.faults = faults;
    this.cause = cause;
    int failed = 0;
    if (faults != null) {
      for (ShardOutcome fault : faults) {
        failed += fault == null ? 0 : 1;
      }
    }
    this.failedCount = failed;
  }

  /** Whether every shard ended well. */
  public boolean ok() {
    return failedCount == 0;
  }

  /** How many shards ended well. */
  public int okCount() {
    return transfer.shardCount() - failedCount;
  }

  /** How many shards did not. */
  public int failedCount() {
    return failedCount;
  }

  /** How a shard of the transfer ended. */
  public ShardOutcome outcome(int shard) {
    Objects.checkIndex(shard, transfer.shardCount());
    ShardOutcome fault = faults == null ? null : faults[shard];
    return fault == null ? ShardOutcome.OK : fault;
  }

  /** The shards that did not end well, as a fresh set of indices into the transfer. */
  public BitSet failedShards() {
    BitSet failed = new BitSet();
    for (int i = 0; faults != null && i < faults.length; i++) {
      if (faults[i] != null) {
        failed.set(i);
      }
    }
    return failed;
  }

  /** The blocks of which a shard did not end well; neighbours of the same block are named once. */
  public BlockIds failedBlocks() {
    BlockIds ids = transfer.ids();
    BitSet failed = failedShards();
    long[] words = new long[2 * failedCount];
    int n = 0;
    for (int i = failed.nextSetBit(0); i >= 0; i = failed.nextSetBit(i + 1)) {
      if (n == 0 || words[n - 2] != ids.high(i) || words[n - 1] != ids.low(i)) {
        words[n++] = ids.high(i);
        words[n++] = ids.low(i);
      }
    }
    return BlockIds.wrap(words).slice(0, n / 2);
  }

  /** The first fault, or null when all went well or shards were merely missing. */
  public @Nullable Throwable cause() {
    return cause;
  }

  /**
   * This result, for callers who want all or nothing.
   *
   * @throws StoreException when a shard did not end well, naming how many, the first block, and the
   *     first cause
   */
  public TransferResult requireOk() {
    if (!ok()) {
      throw new StoreException(toString(), cause);
    }
    return this;
  }

  @Override
  public String toString() {
    if (ok()) {
      return "all " + okCount() + " shards ok";
    }
    int first = failedShards().nextSetBit(0);
    return String.format(
        "%s of %s shards not moved; first: shard %s of block %s %s%s",
        failedCount(),
        transfer.shardCount(),
        transfer.shardIndex(first),
        transfer.ids().hex(first),
        outcome(first),
        cause == null ? "" : ": " + cause.getMessage());
  }
}
