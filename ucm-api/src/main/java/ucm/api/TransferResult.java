package ucm.api;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** How a transfer ended, shard by shard. Immutable. */
public final class TransferResult {

  private final Transfer transfer;
  private final ShardOutcome[] outcomes;
  private final int okCount;
  private final @Nullable Throwable cause;

  /**
   * Takes over the outcomes of a transfer.
   *
   * @param outcomes how each shard ended; not changed any more
   * @param cause the first fault, or null when there was none
   */
  TransferResult(Transfer transfer, ShardOutcome[] outcomes, @Nullable Throwable cause) {
    this.transfer = transfer;
    this.outcomes = outcomes;
    this.cause = cause;
    int ok = 0;
    for (ShardOutcome outcome : outcomes) {
      if (outcome == ShardOutcome.OK) {
        ok++;
      }
    }
    this.okCount = ok;
  }

  /** Whether every shard ended well. */
  public boolean ok() {
    return okCount == outcomes.length;
  }

  /** How many shards ended well. */
  public int okCount() {
    return okCount;
  }

  /** How many shards did not. */
  public int failedCount() {
    return outcomes.length - okCount;
  }

  /** How a shard of the transfer ended. */
  public ShardOutcome outcome(int shard) {
    return outcomes[shard];
  }

  /** The shards that did not end well, as a fresh set of indices into the transfer. */
  public BitSet failedShards() {
    BitSet failed = new BitSet(outcomes.length);
    for (int i = 0; i < outcomes.length; i++) {
      if (outcomes[i] != ShardOutcome.OK) {
        failed.set(i);
      }
    }
    return failed;
  }

  /** The blocks of which a shard did not end well; neighbours of the same block are named once. */
  public BlockIds failedBlocks() {
    BlockIds ids = transfer.ids();
    long[] words = new long[2 * failedCount()];
    int n = 0;
    for (int i = 0; i < outcomes.length; i++) {
      if (outcomes[i] == ShardOutcome.OK) {
        continue;
      }
      if (n > 0 && words[n - 2] == ids.high(i) && words[n - 1] == ids.low(i)) {
        continue;
      }
      words[n++] = ids.high(i);
      words[n++] = ids.low(i);
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
      return "all " + outcomes.length + " shards ok";
    }
    int first = failedShards().nextSetBit(0);
    return failedCount()
        + " of "
        + outcomes.length
        + " shards not moved; first: shard "
        + transfer.shardIndex(first)
        + " of block "
        + transfer.ids().hex(first)
        + " "
        + outcome(first)
        + (cause == null ? "" : ": " + cause.getMessage());
  }
}
