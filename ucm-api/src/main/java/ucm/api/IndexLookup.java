package ucm.api;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Store} implements this, too, when it knows some of its blocks without asking its volume: for
 * an upper stage that would rather move a block once too often than wait for an answer.
 */
public interface IndexLookup {

  /**
   * Says which blocks are known to be present. Never blocks.
   *
   * @param ids any ids, in any order, repetitions allowed
   * @return a fresh set that the caller owns; bit i is set when block i is known to be present, and
   *     clear when it is absent, or not known. Null when nothing is known without asking, as in a stage
   *     that only hands the question on
   * @throws StoreClosedException when the store is closed
   */
  @Nullable BitSet lookupKnown(BlockIds ids);
}
