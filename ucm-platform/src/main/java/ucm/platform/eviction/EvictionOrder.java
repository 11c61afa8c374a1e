package ucm.platform.eviction;

import java.util.function.IntPredicate;

/**
 * Which entry a full cache gives up next. An entry is a small number of the caller's, 0 or more: what an
 * order keeps lies in arrays by entry, which grow with the largest one. Not thread-safe; allocates only
 * to grow.
 */
public interface EvictionOrder {

  /** No entry. */
  int NONE = -1;

  /**
   * An entry comes in that is not here.
   *
   * @param key tells what the entry stands for, also after it was evicted and its number has gone to
   *     something else: 64 bits of a block id's hash, for example
   */
  void add(int entry, long key);

  /** An entry that is here is used again. */
  void touch(int entry);

  /**
   * Takes the entry to evict next out and returns it. What may not go now counts as just used, so an
   * answer takes more than constant time only while most may not; a caller who knows that none may should
   * not ask.
   *
   * @param mayGo whether an entry may be evicted now, as it is not in use; must not call this order
   * @return the entry, or {@link #NONE} when none may go
   */
  int evict(IntPredicate mayGo);

  /** An entry is gone for another reason than {@link #evict}; does nothing when it is not here. */
  void remove(int entry);
}
