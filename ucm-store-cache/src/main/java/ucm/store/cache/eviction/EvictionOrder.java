package ucm.store.cache.eviction;

/**
 * An eviction policy: which block of a stripe goes when a slot is needed.
 *
 * <p>Whole blocks are ordered rather than shards, because a block that lacks one shard is no hit. A block is
 * named by its entry in the {@link BlockTable}. Between {@link #busy} and {@link #idle} it is in use and
 * must not be chosen. Guarded by the stripe's lock; allocates nothing but in {@link #grow}.
 */
public interface EvictionOrder {

  /** Makes place for entries below {@code capacity}. */
  void grow(int capacity);

  /** A block comes in; it is in use. */
  void enter(int entry, long high, long low);

  /** A block that is complete is used once more, in use or not. Called once for all of its shards. */
  void use(int entry);

  /** A block is in use from now on. */
  void busy(int entry);

  /** The last reference to a block is gone. */
  void idle(int entry);

  /** The block to evict next, which is idle; {@link BlockTable#NONE} when none is. */
  int victim();

  /** The block that {@link #victim} named is evicted; {@link #leave} follows. */
  void evicted(int entry, long high, long low);

  /** A block is gone, evicted or not. */
  void leave(int entry);
}
