package ucm.api;

import org.jspecify.annotations.Nullable;

/**
 * A {@link Store} implements this, too, when it keeps blocks in memory that other processes of the same user can
 * map: an engine then reads them where they are, and no copy is made for it. Thread-safe, as every store is.
 */
public interface BlockLender {

  /**
   * Where blocks are lent: each begins in a slot, and lies in one piece.
   *
   * @param memory all of it
   * @param descriptor of the memory in this process; others open {@code /proc/PID/fd/N}
   * @param isPinned whether devices that this process copies to read it by themselves
   * @param slots how many; a block may reach over several
   * @param stride bytes from one slot to the next
   */
  record Lending(MemoryRegion memory, int descriptor, boolean isPinned, int slots, long stride) {}

  /**
   * Says where blocks are lent, as long as the store is open.
   *
   * @return null when this store lends none
   */
  @Nullable Lending lending();

  /**
   * Lends blocks that are in memory: their bytes stay as they are until they are {@linkplain #giveBack given back}.
   *
   * @param ids blocks in the order in which they are wanted
   * @return where the first of them begin; fewer than all when the next one does not lie in memory, whole and in
   *     one piece, or too much is lent
   * @throws StoreClosedException when the store is not open
   */
  int[] lend(BlockIds ids);

  /** A load whose blocks stay in the store, which lends them. */
  interface Fetch extends Task {

    /**
     * Where the first blocks begin, once the task has completed; fewer than all when the next one could not be
     * loaded, or does not lie in one piece. They are to be {@linkplain #giveBack given back}, each once.
     */
    int[] lent();
  }

  /**
   * Loads blocks from the next stage into memory, and lends them; those that are in memory by then are lent as
   * they are. By default a store lends only what is in memory.
   *
   * @param ids blocks in the order in which they are wanted
   * @return a load of the first of them, as many as may be lent; null when that is none
   * @throws StoreClosedException when the store is not open
   * @throws QueueFullException when it has enough to do
   */
  default @Nullable Fetch fetch(BlockIds ids) {
    return null;
  }

  /** Gives slots back that were lent, each once, also after the store was closed. */
  void giveBack(int[] slots);
}
