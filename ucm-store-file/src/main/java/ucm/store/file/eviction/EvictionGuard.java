package ucm.store.file.eviction;

import java.util.BitSet;
import ucm.api.BlockIds;

/** Says which cold blocks of a store may be removed, where that depends on another stage. */
public interface EvictionGuard {

  /**
   * Says which blocks may go. May take them elsewhere first, and so take its time; called by the
   * collector's thread.
   *
   * @return a fresh set; bit i is set when block i is not lost when it is removed here
   */
  BitSet mayGo(BlockIds ids);
}
