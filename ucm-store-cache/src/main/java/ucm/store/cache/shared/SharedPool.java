package ucm.store.cache.shared;

import java.util.BitSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreMetrics;
import ucm.store.cache.eviction.BlockTable;
import ucm.store.cache.pool.SlotWait;
import ucm.store.cache.pool.StripedSlots;

/**
 * The slots of a pool that several processes share, as this process sees them.
 *
 * <p>Here a whole block has its place or none: slots come in slabs of one block. That makes what must
 * survive the death of a process small (a word a slab and a word a slot), and one eviction gives room
 * for all shards of a block. A block of which few shards are ever moved wastes the rest of its slab.
 *
 * <p>What happens in other processes is told to this one by {@link OwnerMonitor}, which calls {@link
 * #checkOwners} and {@link #clear}. Look-ups take no lock at all; no process waits for one that has died for
 * longer than it takes to see that it has.
 */
final class SharedPool extends StripedSlots {

  private static final Logger LOG = LoggerFactory.getLogger(SharedPool.class);

  private final SegmentLayout layout;
  private final SegmentWords words;
  private final SegmentOwners owners;
  private final SharedStripe[] stripes;
  private volatile boolean left;

  /**
   * A view of a segment's pool.
   *
   * @param hasNext whether blocks dumped here are written to a lower stage
   * @param evictions counts the shards this process evicts
   * @param whenRoom is told that slots came free while tasks {@linkplain #wanting want} some; must
   *     not block
   */
  SharedPool(
      SharedSegment segment, boolean hasNext, StoreMetrics.Counter evictions, Runnable whenRoom) {
    SharedStripe[] all = new SharedStripe[segment.layout().stripes()];
    super(all, whenRoom);
    this.layout = segment.layout();
    this.words = segment.words();
    this.owners = segment.owners();
    this.stripes = all;
    for (int i = 0; i < stripes.length; i++) {
      stripes[i] = new SharedStripe(i, layout, words, owners, hasNext, evictions);
    }
  }

  @Override
  public boolean isComplete(BlockIds ids, int i) {
    try {
      return super.isComplete(ids, i);
    } catch (IllegalStateException e) {
      // Look-ups are not waited for at close: the segment was unmapped before this one.
      throw new StoreClosedException("Cache");
    }
  }

  @Override
  public boolean wasDumped(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return (stripe(hash).dumpers(hash, high, low) & (1 << owners.own())) != 0;
  }

  @Override
  public boolean isDumpedElsewhere(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return (stripe(hash).dumpers(hash, high, low) & ~(1 << owners.own())) != 0;
  }

  @Override
  public void setWanting(int tasks) {
    if ((tasks > 0) != (wanting() > 0)) {
      owners.setWanting(tasks > 0);
    }
    super.setWanting(tasks);
  }

  /** Slots of slabs that have a block, or are about to; 0 once this process has left. */
  @Override
  public int inUse() {
    int slabs = 0;
    try {
      for (int slab = 0; slab < layout.slabs() && !left; slab++) {
        slabs += SlabWord.state(words.get(layout.slabAt(slab))) == SlabWord.FREE ? 0 : 1;
      }
    } catch (IllegalStateException e) {
      // A gauge that is read while the store closes: the segment was unmapped before it.
      return 0;
    }
    return left ? 0 : slabs * layout.shards();
  }

  /** Slots that any process refers to. Looks at all of them. */
  int referencedAnywhere() {
    int count = 0;
    for (int slot = 0; slot < layout.slots(); slot++) {
      count += SlotWord.owners(words.get(layout.slotWordAt(slot))) == 0 ? 0 : 1;
    }
    return count;
  }

  /** Stripes whose shared lock is held. */
  int locked() {
    int count = 0;
    for (int stripe = 0; stripe < layout.stripes(); stripe++) {
      count += words.getInt(layout.stripeAt(stripe) + SegmentLayout.STRIPE_LOCK) == 0 ? 0 : 1;
    }
    return count;
  }

  /** Tells those who wait for other processes what these have done. */
  void checkOwners() {
    for (SharedStripe stripe : stripes) {
      for (SlotWait ended = stripe.takeEnded(); ended != null; ended = stripe.takeEnded()) {
        tell(ended);
        stripe.giveBack(ended);
      }
    }
    offerRoom();
  }

  /** Clears up after the owners that have died, unless another process does. */
  void clear() {
    for (int owner = 0; owner < SegmentLayout.OWNERS; owner++) {
      if (!owners.tryClear(owner)) {
        continue;
      }
      boolean past = owners.isPastQuarantine(owner);
      boolean quarantined = false;
      for (SharedStripe stripe : stripes) {
        quarantined |= stripe.clear(owner, !past);
      }
      LOG.info(
          "Cache: process {} that shared the buffer has died; {}",
          owners.pid(owner),
          quarantined ? "some slots stay out of use for a while" : "what it held is free");
      owners.cleared(owner, quarantined);
      owners.wakeAll();
    }
  }

  /**
   * Drops the blocks that this process dumped and the next stage does not have for good: once this
   * process has left, no process would bring them there.
   */
  void forgetDumped(Store next) {
    long bit = SlabWord.dumper(owners.own());
    for (int slab = 0; slab < layout.slabs(); slab++) {
      long at = layout.slabAt(slab);
      if ((words.get(at) & bit) == 0) {
        continue;
      }
      long high = words.plain(at + SegmentLayout.SLAB_HIGH);
      long low = words.plain(at + SegmentLayout.SLAB_LOW);
      if (isDurable(next, BlockIds.of(high, low))) {
        words.clearBits(at, bit);
      } else {
        drop(high, low);
      }
    }
  }

  /** Gives up every reference of this process, whose threads must not touch the pool any more. */
  void leave() {
    for (SharedStripe stripe : stripes) {
      boolean _ = stripe.clear(owners.own(), false);
    }
    left = true;
    owners.wakeAll();
  }

  private static boolean isDurable(Store next, BlockIds id) {
    try {
      BitSet durable = next.durable(id);
      return durable.get(0);
    } catch (RuntimeException e) {
      // Not known is not there.
      return false;
    }
  }

  private void tell(SlotWait ended) {
    for (SlotWait joined = ended; joined != null; joined = joined.next()) {
      if (ended.isFilled) {
        joined.waiter().filled(joined.index(), ended.slot);
      } else {
        release(ended.slot);
        joined.waiter().abandoned(joined.index());
      }
    }
  }

  private SharedStripe stripe(long hash) {
    return stripes[stripeOf(hash)];
  }

  @Override
  public int stripeOfSlot(int slot) {
    return layout.stripeOfSlab(slot / layout.shards());
  }

  @Override
  protected void roomCame() {
    offerRoom();
    owners.wake(owners.wanting());
  }
}
