package ucm.store.cache.transfer;

import java.util.Arrays;
import ucm.api.BlockIds;
import ucm.store.cache.eviction.BlockTable;
import ucm.store.cache.pool.ObjectPool;

/**
 * The different blocks among the shards of a transfer, in order of their first shard. Used by one
 * thread at a time, except for their {@link #count}.
 */
final class DistinctBlocks {

  private static final int[] NONE = {};

  private final ObjectPool<int[]> arrays;
  private final int shards;
  private final int runs;
  private final int count;
  private int[] blockOfShard;
  private int[] firstShard;

  /** Numbers the blocks of a transfer's ids. */
  DistinctBlocks(BlockIds ids, ObjectPool<int[]> arrays) {
    this.arrays = arrays;
    shards = ids.size();
    runs = runs(ids);
    int mask = Integer.highestOneBit(Math.max(1, 2 * runs)) * 2 - 1;
    int[] buckets = arrays.take(mask + 1);
    Arrays.fill(buckets, 0, mask + 1, 0);
    blockOfShard = arrays.take(shards);
    firstShard = arrays.take(runs);
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
    arrays.giveBack(buckets, mask + 1);
  }

  /** How many blocks; for any thread. */
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

  /** Forgets everything but how many blocks there are; what was forgotten cannot be asked for. */
  void forget() {
    int[] ownBlocks = blockOfShard;
    int[] ownFirst = firstShard;
    if (ownBlocks.length == 0) {
      return;
    }
    blockOfShard = NONE;
    firstShard = NONE;
    arrays.giveBack(ownBlocks, shards);
    arrays.giveBack(ownFirst, runs);
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
