package ucm.cli.replay;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.TransferResult;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.connector.HitPolicy;

/**
 * Does for a prompt what an engine does: asks how much of it is stored, loads that, computes the rest
 * (here: makes it up), and dumps what was computed. Used by one thread.
 */
record PrefixClient(Store store, EngineMemory memory, HitPolicy policy, Duration timeout) {

  private static final Logger LOG = LoggerFactory.getLogger(PrefixClient.class);

  /**
   * What serving prompts took.
   *
   * @param blocks full blocks of the prompts
   * @param hits how many of them were found and loaded, from the first one on
   * @param dumped how many of them were dumped
   * @param loadNanos look-up and load, until the bytes are in the engine's memory
   * @param dumpNanos dump, until the engine may use the memory again
   */
  record Served(long blocks, long hits, long dumped, long loadNanos, long dumpNanos) {

    Served plus(Served next) {
      return new Served(
          blocks + next.blocks,
          hits + next.hits,
          dumped + next.dumped,
          loadNanos + next.loadNanos,
          dumpNanos + next.dumpNanos);
    }

    /** The share of the blocks that was hit; 0 without any. */
    double hitRate() {
      return blocks == 0 ? 0 : (double) hits / blocks;
    }
  }

  /** Serves one prompt of some tokens, whose blocks are given root first. */
  Served serve(String requestId, int tokens, BlockIds ids) throws InterruptedException {
    int blocks = ids.size();
    if (policy.skips(tokens)) {
      return new Served(blocks, 0, 0, 0, 0);
    }
    long start = System.nanoTime();
    store.notePrompt(ids);
    int found = store.lookupPrefix(ids) + 1;
    int hits = load(ids, policy.loaded(0, found, tokens));
    long loaded = System.nanoTime();
    LOG.debug(
        "request_id: {}, total_blocks_num: {}, hit hbm: 0, hit external: {}, total tokens: {}",
        requestId,
        blocks,
        found,
        tokens);
    if (store.keepsBytes()) {
      memory.verify(ids, 0, hits);
    }
    memory.fill(ids, hits, blocks);
    long computed = System.nanoTime();
    if (hits < blocks) {
      TransferResult result = store.dump(memory.transfer(ids, hits, blocks)).await(timeout);
      if (!result.ok()) {
        // An engine goes on without what was not stored; flush counts it, and says why.
        LOG.debug("dump: {}", result);
      }
    }
    long dumpNanos = System.nanoTime() - computed;
    return new Served(blocks, hits, blocks - hits, loaded - start, dumpNanos);
  }

  /** Loads the first blocks; a block that is gone since the look-up ends the run before it. */
  private int load(BlockIds ids, int found) throws InterruptedException {
    if (found == 0) {
      return 0;
    }
    TransferResult result = store.load(memory.transfer(ids, 0, found)).await(timeout);
    if (result.ok()) {
      return found;
    }
    if (result.cause() != null) {
      LOG.warn("load: {}", result);
    }
    return result.failedShards().nextSetBit(0) / memory.shardsPerBlock();
  }
}
