package ucm.store.cache.pool;

import ucm.api.StoreMetrics;
import ucm.store.cache.eviction.BlockTable;
import ucm.store.cache.eviction.CachePolicy;

/**
 * The slots of a pool that is this process's alone, and what is in them.
 *
 * <p>The slots are divided among stripes, each a small pool of its own with its own lock, blocks and
 * eviction order. A stripe has room for at least {@value #BLOCKS_PER_STRIPE} blocks, so that chance
 * fills them about evenly; a small pool is one stripe. Rejected: one free list and one order for all,
 * which every copy thread would meet at on a large machine.
 */
public final class SlotPool extends StripedSlots {

  private static final int BLOCKS_PER_STRIPE = 4096;
  // The stripes without room are remembered in the bits of a long while a task is planned.
  private static final int MAX_STRIPES = 64;

  private final PoolStripe[] stripes;
  private final int slotsPerStripe;

  /**
   * A pool of free slots.
   *
   * @param slots how many
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   * @param evictions counts the shards evicted
   * @param whenRoom is told that slots came free while tasks {@linkplain #wanting want} some; must
   *     not block
   */
  public SlotPool(
      int slots,
      int shards,
      CachePolicy policy,
      StoreMetrics.Counter evictions,
      Runnable whenRoom) {
    long blocks = slots / shards;
    int count = Integer.highestOneBit(Math.clamp(blocks / BLOCKS_PER_STRIPE, 1, MAX_STRIPES));
    PoolStripe[] all = new PoolStripe[count];
    super(all, whenRoom);
    this.slotsPerStripe = slots / count;
    this.stripes = all;
    for (int i = 0; i < count; i++) {
      int own = i == count - 1 ? slots - i * slotsPerStripe : slotsPerStripe;
      stripes[i] = new PoolStripe(i, i * slotsPerStripe, own, shards, policy, evictions);
    }
  }

  @Override
  public boolean wasDumped(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return stripes[stripeOf(hash)].wasDumped(hash, high, low);
  }

  @Override
  public int inUse() {
    int sum = 0;
    for (PoolStripe stripe : stripes) {
      sum += stripe.inUse();
    }
    return sum;
  }

  @Override
  public int stripeOfSlot(int slot) {
    return Math.min(slot / slotsPerStripe, stripes.length - 1);
  }
}
