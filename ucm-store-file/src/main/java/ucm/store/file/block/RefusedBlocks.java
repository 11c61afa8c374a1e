package ucm.store.file.block;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Transfer;
import ucm.store.file.space.SpaceRefusedException;

/**
 * Blocks that come layer by layer and of which a shard found no room. Their other shards are refused
 * too: a file begun with them could never become whole, and would hold room that a whole block needs.
 * A shard that comes a second time is a new dump of the block, which is tried again. Bounded: the
 * oldest is forgotten. Thread-safe.
 */
final class RefusedBlocks {

  private record Refusal(BitSet shards, SpaceRefusedException why) {}

  // Guarded by this, but for the size.
  private final Map<BlockIds, Refusal> refusals = new LinkedHashMap<>();
  private volatile int size;

  /** Shards of one block found no room. */
  synchronized void add(Transfer transfer, int from, int to, SpaceRefusedException why) {
    BlockIds id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    if (size == PartialBlocks.MAX_BLOCKS && !refusals.containsKey(id)) {
      refusals.remove(refusals.keySet().iterator().next());
    }
    Refusal refusal = refusals.computeIfAbsent(id, _ -> new Refusal(new BitSet(), why));
    for (int i = from; i < to; i++) {
      refusal.shards.set(transfer.shardIndex(i));
    }
    forgetWhole(id, refusal, transfer);
  }

  /**
   * Adds shards of one block.
   *
   * @return why they are refused, or null when they are to be written
   */
  @Nullable SpaceRefusedException refuse(Transfer transfer, int from, int to) {
    return size == 0 ? null : refuseKnown(transfer, from, to);
  }

  private synchronized @Nullable SpaceRefusedException refuseKnown(
      Transfer transfer, int from, int to) {
    BlockIds id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    Refusal refusal = refusals.get(id);
    if (refusal == null) {
      return null;
    }
    for (int i = from; i < to; i++) {
      if (refusal.shards.get(transfer.shardIndex(i))) {
        refusals.remove(id);
        size = refusals.size();
        return null;
      }
    }
    add(transfer, from, to, refusal.why);
    return refusal.why;
  }

  private void forgetWhole(BlockIds id, Refusal refusal, Transfer transfer) {
    if (refusal.shards.cardinality() == transfer.layout().shardCount()) {
      refusals.remove(id);
    }
    size = refusals.size();
  }
}
