package ucm.pipeline.connector;

import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.statistics.ConnectorFaults;
import ucm.pipeline.hash.BlockHasher;

/**
 * Asks the store how far a prompt is there. A block counts only when the part of every rank is there,
 * which with MLA is one part. Thread-safe.
 */
final class RankLookup {

  private final Store store;
  private final BlockHasher hasher;
  private final int parts;
  private final ConnectorFaults faults;

  RankLookup(Store store, BlockHasher hasher, int parts, ConnectorFaults faults) {
    this.store = store;
    this.hasher = hasher;
    this.parts = parts;
    this.faults = faults;
  }

  /** How many blocks from the first one on are there without a gap; -1 when the store failed. */
  int run(BlockIds ids) {
    int run = ids.size();
    try {
      for (int rank = 0; rank < parts && run > 0; rank++) {
        run = store.lookupPrefix(hasher.ofRank(rank, ids.slice(0, run))) + 1;
      }
      return run;
    } catch (RuntimeException e) {
      faults.record("a look-up failed, so nothing is loaded and the engine computes", e);
      return -1;
    }
  }
}
