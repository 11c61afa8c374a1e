package ucm.store.cache.transfer;

import ucm.api.BlockIds;
import ucm.store.cache.eviction.BlockTable;

/** The different blocks among the shards of a transfer, in order of their first shard. Immutable. */
final class DistinctBlocks {

  private final int count;
  private final int[] blockOfShard;
  private final int[] firstShard;

  /** Numbers the blocks of a transfer's ids. */
  DistinctBlocks(BlockIds ids) {
    int shards = ids.size();
    int runs = runs(ids);
    int mask = Integer.highestOneBit(Math.max(1, 2 * runs)) * 2 - 1;
    int[] buckets = new int[mask + 1];
    blockOfShard = new int[shards];
    firstShard = new int[runs];
    int blocks = 0;
    for (int shard = 0; shard < shards; shard++) {
      long high = ids.high(shard);
      long low = ids.low(shard);
      if (shard > 0 && same(ids, shard - 1, high, low)) {
        blockOfShard[shard] = blockOfShard[shard - 1];
        continue;
      }
      int at = (int) BlockTable.hash(high, low) & mask;
      while (buckets[at] != 0 && !same(ids, firstShard[buckets[at] - 1], high, low)) {
        at = (at + 1) & mask;
      }
      if (buckets[at] == 0) {
        firstShard[blocks++] = shard;
        buckets[at] = blocks;
      }
      blockOfShard[shard] = buckets[at] - 1;
    }
    count = blocks;
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
      if (shard == 0 || !same(ids, shard - 1, ids.high(shard), ids.low(shard))) {
        runs++;
      }
    }
    return runs;
  }

  private static boolean same(BlockIds ids, int shard, long high, long low) {
    return ids.high(shard) == high && ids.low(shard) == low;
  }
}
