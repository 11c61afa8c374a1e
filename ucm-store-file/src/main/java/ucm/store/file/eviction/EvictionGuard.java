package ucm.store.file.eviction;

import java.util.BitSet;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;

/** Says which cold blocks of a store may be removed, where that depends on another stage. */
public interface EvictionGuard {

  /**
   * Says which blocks may go. May take them elsewhere first, and so take its time; called by the
   * collector's thread.
   *
   * @return a fresh set; bit i is set when block i is not lost when it is removed here
   */
  BitSet mayGo(BlockIds ids);

  /** The guard that a store is given when it opens, or null when its blocks may go at any time. */
  static @Nullable EvictionGuard of(StoreContext context) {
    return context instanceof Guarded guarded ? guarded.guard() : null;
  }

  /**
   * What a store of files is given that is the upper of two tiers: a guard. It knows no next stage.
   *
   * @param outer what the tiers were given
   */
  record Guarded(StoreContext outer, EvictionGuard guard) implements StoreContext {

    @Override
    public @Nullable Store next() {
      return null;
    }

    @Override
    public StoreMetrics metrics() {
      return outer.metrics();
    }

    @Override
    public LongSupplier nanoClock() {
      return outer.nanoClock();
    }
  }
}
