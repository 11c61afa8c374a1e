package ucm.store.file.block;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;

/** The blocks that are not whole yet, by id. Bounded. Thread-safe. */
public final class PartialBlocks {

  /** Most unfinished blocks; dumps of one more are refused. */
  static final int MAX_BLOCKS = 1 << 16;

  // Guarded by this; size is read without it.
  private final Map<BlockIds, PartialBlock> blocks = new HashMap<>();
  private volatile int size;

  /** The unfinished block of an id, or null. */
  @Nullable PartialBlock find(long idHigh, long idLow) {
    // Blocks dumped whole never come here, and then there is nothing to lock.
    return size == 0 ? null : locked(BlockIds.of(idHigh, idLow));
  }

  private synchronized @Nullable PartialBlock locked(BlockIds id) {
    return blocks.get(id);
  }

  /**
   * Takes a block up, unless its id is there.
   *
   * @return the one that is there now, or null when there is no room
   */
  synchronized @Nullable PartialBlock findOrAdd(PartialBlock candidate) {
    BlockIds id = BlockIds.of(candidate.idHigh, candidate.idLow);
    PartialBlock found = blocks.get(id);
    if (found != null || size == MAX_BLOCKS) {
      return found;
    }
    blocks.put(id, candidate);
    size = blocks.size();
    return candidate;
  }

  /** Drops a block. */
  synchronized void remove(PartialBlock block) {
    blocks.remove(BlockIds.of(block.idHigh, block.idLow), block);
    size = blocks.size();
  }

  /** All of them. */
  public synchronized List<PartialBlock> all() {
    return new ArrayList<>(blocks.values());
  }

  /** How many. */
  public int size() {
    return size;
  }
}
