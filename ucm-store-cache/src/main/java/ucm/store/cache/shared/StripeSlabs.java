package ucm.store.cache.shared;

import ucm.api.StoreMetrics;

/**
 * Gives and takes the slabs of one stripe under its shared lock, after repairing what a holder that
 * died with the lock has left. Where the lock is not to be had in time, there is no room.
 */
final class StripeSlabs {

  private final SlabTable table;
  private final SlabManager manager;
  private final StripeLock lock;
  private final long dumper;

  /**
   * A view of a stripe.
   *
   * @param hasNext whether blocks dumped here are written to a lower stage
   * @param evictions counts the shards this process evicts
   */
  StripeSlabs(
      SegmentWords words,
      SegmentLayout layout,
      SegmentOwners owners,
      int stripe,
      boolean hasNext,
      StoreMetrics.Counter evictions) {
    this.table = new SlabTable(words, layout, stripe, owners.own());
    this.manager = new SlabManager(words, layout, stripe, owners.own(), evictions);
    this.lock = new StripeLock(words, layout.stripeAt(stripe), owners);
    this.dumper = hasNext ? SlabWord.dumper(owners.own()) : 0;
  }

  /**
   * Makes a place for a block, with one slot reserved.
   *
   * @param state LOADING or DUMPING
   * @return the slab, {@link SlabTable#NONE} when there is no room, or {@link SlabTable#FOUND}
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
      return manager.take(hash, high, low, shard, state, dumpers);
    } finally {
      lock.unlock();
    }
  }

  /** Takes a slab that look-ups do not find, with its first slot reserved; or {@link SlabTable#NONE}. */
  int takeUnnamed() {
    if (!lock()) {
      return SlabTable.NONE;
    }
    try {
      return manager.takeUnnamed();
    } finally {
      lock.unlock();
    }
  }

  /** Frees a slab that is an orphan whose slots have no references; whether it did. */
  boolean freeIfIdle(int slab) {
    if (SlabWord.state(table.word(slab)) != SlabWord.ORPHAN || !table.isIdle(slab) || !lock()) {
      return false;
    }
    try {
      return manager.freeOrphan(slab);
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
    // As often as it takes: no other process does it, and a living holder of the lock gives it
    // back.
    while (lock.lock() == StripeLock.REFUSED) {
      Thread.onSpinWait();
    }
    try {
      return manager.repair(1 << owner, quarantine);
    } finally {
      lock.unlock();
    }
  }

  private boolean lock() {
    int answer = lock.lock();
    if (answer == StripeLock.TAKEN_OVER) {
      boolean _ = manager.repair(0, true);
    }
    return answer != StripeLock.REFUSED;
  }
}
