package ucm.store.cache.transfer;

import java.util.Arrays;
import ucm.api.BlockLender;
import ucm.api.ShardOutcome;
import ucm.api.Transfer;

/** A load whose blocks stay in the pool, where they are lent. Its transfer names the pool as their memory. */
final class FetchTask extends LoadTask implements BlockLender.Fetch {

  private static final int NOT_FETCHED = -1;

  // By shard, each with a reference. Written before the shard ends, read after the last one has.
  private final int[] fetched;
  private int[] lent = {};

  FetchTask(CacheRuntime cache, long id, Transfer transfer) {
    super(cache, id, transfer);
    fetched = new int[shardCount];
    Arrays.fill(fetched, NOT_FETCHED);
  }

  @Override
  void goOn(int[] shards) {
    cache.metrics.hitShards.add(shards.length);
    for (int shard : shards) {
      arrived(shard, slotOf[shard], false);
    }
  }

  @Override
  void arrived(int shard, int slot, boolean byThis) {
    if (byThis) {
      cache.pool.filled(slot, false);
    }
    if (!take(shard)) {
      cache.pool.release(slot);
      return;
    }
    fetched[shard] = slot;
    finish(shard, ShardOutcome.OK, null);
  }

  @Override
  void ended() {
    lent = cache.pool.lendFetched(fetched);
    cache.writes.busy(lent.length);
  }

  @Override
  public int[] lent() {
    return lent;
  }
}
