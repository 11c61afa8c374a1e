package ucm.store.cache.transfer;

import ucm.api.BlockIds;
import ucm.platform.table.BlockTable;

/** The different blocks among the shards of a transfer, in order of their first shard. Immutable. */
final class DistinctBlocks {

  private final int count;
  private final int[] blockOfShard;
  private final int[] firstShard;

  /** Numbers the blocks of a transfer's ids. */
  DistinctBlocks(BlockIds ids) {
    int shards = ids.size();
    int most = runs(ids);
    BlockTable table = new BlockTable(most);
    blockOfShard = new int[shards];
    firstShard = new int[most];
    for (int shard = 0; shard < shards; shard++) {
      int before = table.size();
      int block = table.put(ids.high(shard), ids.low(shard));
      if (table.size() > before) {
        firstShard[block] = shard;
      }
      blockOfShard[shard] = block;
    }
    count = table.size();
  }

  /** How many blocks. */
  int count() {
    return count;
  }

  /** The number of a shard's block. */
  int blockOf(int shard) {
    return blockOfShard[shard];
  }

  /** The first shard of a block. */
  int firstShard(int block) {
    return firstShard[block];
  }

  /** How often the block changes from one shard to the next: there are no more blocks than that. */
  private static int runs(BlockIds ids) {
    int runs = 0;
    for (int shard = 0; shard < ids.size(); shard++) {
      boolean same =
          shard > 0
              && ids.high(shard) == ids.high(shard - 1)
              && ids.low(shard) == ids.low(shard - 1);
      runs += same ? 0 : 1;
    }
    return runs;
  }
}
