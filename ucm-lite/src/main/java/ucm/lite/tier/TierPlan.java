package ucm.lite.tier;

import java.util.stream.LongStream;

/**
 * A cluster with KV caches in HBM, DRAM, local disks and storage, each least recently used first. A
 * capacity of 0 leaves a tier out.
 *
 * @param nodes machines, 1 or more
 * @param ranksPerNode data-parallel engines on each, 1 or more
 * @param hbmBlocks blocks in the HBM of one engine
 * @param dramBlocks blocks in the DRAM of one node
 * @param sharedDram whether the DRAM of all nodes is one pool
 * @param diskBlocks blocks on the local disks of one node, before storage
 * @param storageBlocks blocks in storage: of all nodes together when shared, otherwise of one
 * @param sharedStorage whether all nodes see the same storage, such as a file system
 * @param writePolicy when blocks get into the tiers below HBM
 * @param routing how requests are dealt to engines
 */
public record TierPlan(
    int nodes,
    int ranksPerNode,
    long hbmBlocks,
    long dramBlocks,
    boolean sharedDram,
    long diskBlocks,
    long storageBlocks,
    boolean sharedStorage,
    WritePolicy writePolicy,
    Routing routing) {

  private static final int MAX_RANKS = 4096;

  public TierPlan {
    if (nodes < 1 || ranksPerNode < 1 || (long) nodes * ranksPerNode > MAX_RANKS) {
      throw new IllegalArgumentException(
          String.format(
              "nodes and ranks are 1 or more, and at most %s ranks together; found %s nodes with %s"
                  + " ranks each",
              MAX_RANKS, nodes, ranksPerNode));
    }
    if (hbmBlocks < 0 || dramBlocks < 0 || diskBlocks < 0 || storageBlocks < 0) {
      throw new IllegalArgumentException("capacities must not be negative");
    }
  }

  public int ranks() {
    return nodes * ranksPerNode;
  }

  /** The capacities of HBM of an engine, DRAM and disks of a node, and storage, in blocks. */
  long[] capacities() {
    return new long[] {hbmBlocks, dramBlocks, diskBlocks, storageBlocks};
  }

  /** Blocks of the smallest cache of a tier; {@link Long#MAX_VALUE} without any tier. */
  public long smallestTier() {
    return LongStream.of(capacities()).filter(blocks -> blocks > 0).min().orElse(Long.MAX_VALUE);
  }

  /**
   * This cluster with other capacities of HBM of an engine, DRAM and disks of a node, and storage, in
   * blocks.
   */
  public TierPlan withCapacities(long hbm, long dram, long disk, long storage) {
    return new TierPlan(
        nodes,
        ranksPerNode,
        hbm,
        dram,
        sharedDram,
        disk,
        storage,
        sharedStorage,
        writePolicy,
        routing);
  }
}
