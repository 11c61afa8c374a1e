package ucm.store.cache.shared;

import ucm.api.StoreMetrics;

/**
 * Gives and takes the frames of one stripe under its shared lock, after repairing what a holder that
 * died with the lock has left. Where the lock is not to be had in time, there is no room.
 */
final class StripeSlabs {

  private final SlabTable table;
  private final SlabManager keeper;
  private final StripeLock lock;
  private final long dumper;

  /**
   * A view of a stripe.
   *
   * @param hasBackend whether blocks dumped here are written to a stage behind
   * @param evictions counts the shards this process evicts
   */
  StripeSlabs(
      SegmentWords words,
      SegmentLayout layout,
      SegmentOwners owners,
      int stripe,
      boolean hasBackend,
      StoreMetrics.Counter evictions) {
    this.table = new SlabTable(words, layout, stripe, owners.own());
    this.keeper = new SlabManager(words, layout, stripe, owners.own(), evictions);
    this.lock = new StripeLock(words, layout.stripeAt(stripe), owners);
    this.dumper = hasBackend ? SlabWord.dumper(owners.own()) : 0;
  }

  /**
   * Makes a place for a block, with one slot claimed.
   *
   * @param state LOADING or DUMPING
   * @return the frame, {@link SlabTable#NONE} when there is no room, or {@link SlabTable#FOUND}
   */
  int take(long hash, long high, long low, int shard, int state) {
    if (!lock()) {
      return SlabTable.NONE;
    }
    try {
      if (table.walk(hash, high, low) != SlabTable.NONE) {
        return SlabTable.FOUND;
      }
      long dumpers = state == SlotWord.DUMPING ? dumper : 0;
      return keeper.take(hash, high, low, shard, state, dumpers);
    } finally {
      lock.unlock();
    }
  }

  /** Makes a place that nobody finds, with its first slot claimed; or {@link SlabTable#NONE}. */
  int takeUnnamed() {
    if (!lock()) {
      return SlabTable.NONE;
    }
    try {
      return keeper.takeUnnamed();
    } finally {
      lock.unlock();
    }
  }

  /** Frees a frame that is an orphan to whose slots nobody refers; whether it did. */
  boolean freeIfIdle(int frame) {
    if (SlabWord.state(table.word(frame)) != SlabWord.ORPHAN || !table.isIdle(frame) || !lock()) {
      return false;
    }
    try {
      return keeper.freeOrphan(frame);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes an owner that died or leaves out of the stripe.
   *
   * @param quarantine whether slots it was filling stay out of use
   * @return whether there are such slots
   */
  boolean clear(int owner, boolean quarantine) {
    // As often as it takes: nobody else does it, and a holder of the lock that lives gives it back.
    while (lock.lock() == StripeLock.REFUSED) {
      Thread.onSpinWait();
    }
    try {
      return keeper.repair(1 << owner, quarantine);
    } finally {
      lock.unlock();
    }
  }

  private boolean lock() {
    int answer = lock.lock();
    if (answer == StripeLock.TAKEN_OVER) {
      boolean _ = keeper.repair(0, true);
    }
    return answer != StripeLock.REFUSED;
  }
}
