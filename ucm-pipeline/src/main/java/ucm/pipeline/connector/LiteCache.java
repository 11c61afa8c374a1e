package ucm.pipeline.connector;

import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.Transfer;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.statistics.ConnectorFaults;

/**
 * Lite mode: what a cache would have held, from look-ups alone. A prompt's blocks are noted as soon
 * as they were looked up, in a store that keeps metadata only, so no byte is moved and the engine is
 * told of no hit.
 */
final class LiteCache {

  /** A block of one byte, for a store that only this uses. */
  static final KvLayout LAYOUT = KvLayout.uniform(1, 1);

  private final BlockLayout cut;
  private final MemoryRegion nowhere;
  private final Store store;
  private final ConnectorFaults faults;

  LiteCache(Store store, KvLayout layout, ConnectorFaults faults) {
    this.store = store;
    this.cut = layout.blockLayout();
    this.nowhere = MemoryRegion.device(0, 0, cut.blockSize());
    this.faults = faults;
  }

  /** How many of the blocks from {@code from} on would have been found; then notes all of them. */
  int run(BlockIds ids, int from) {
    try {
      int run = store.lookupPrefix(ids.slice(from, ids.size())) + 1;
      // Those that are there are named too, because that is a use, as a load would have been.
      Transfer.Builder all = Transfer.packed(cut);
      for (int i = 0; i < ids.size(); i++) {
        for (int shard = 0; shard < cut.shardCount(); shard++) {
          all.shard(ids, i, shard).piece(nowhere, 0);
        }
      }
      store.dump(all.build());
      return run;
    } catch (RuntimeException e) {
      faults.record("the hits of a request could not be counted", e);
      return 0;
    }
  }
}
