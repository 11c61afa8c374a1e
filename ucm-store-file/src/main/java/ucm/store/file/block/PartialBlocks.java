package ucm.store.file.block;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The blocks that are not whole yet, by id: a hash table with chains, so that finding one costs no
 * allocation. Bounded. Thread-safe.
 */
public final class PartialBlocks {

  /** Most unfinished blocks; dumps of one more are refused. */
  static final int MAX_BLOCKS = 1 << 16;

  private static final int CHAINS = 1 << 12;

  // Guarded by this.
  private final @Nullable PartialBlock[] chains = new PartialBlock[CHAINS];
  private volatile int size;

  /** The unfinished block of an id, or null. */
  @Nullable PartialBlock find(long idHigh, long idLow) {
    // Blocks dumped whole never come here, and then there is nothing to lock.
    return size == 0 ? null : locked(idHigh, idLow);
  }

  private synchronized @Nullable PartialBlock locked(long idHigh, long idLow) {
    PartialBlock block = chains[chain(idLow)];
    while (block != null && (block.idHigh != idHigh || block.idLow != idLow)) {
      block = block.next;
    }
    return block;
  }

  /**
   * Takes a block up, unless its id is there.
   *
   * @return the one that is there now, or null when there is no room
   */
  synchronized @Nullable PartialBlock findOrAdd(PartialBlock candidate) {
    PartialBlock found = locked(candidate.idHigh, candidate.idLow);
    if (found != null) {
      return found;
    }
    if (size == MAX_BLOCKS) {
      return null;
    }
    int chain = chain(candidate.idLow);
    candidate.next = chains[chain];
    chains[chain] = candidate;
    size = size + 1;
    return candidate;
  }

  /** Drops a block. */
  synchronized void remove(PartialBlock block) {
    int chain = chain(block.idLow);
    PartialBlock before = null;
    PartialBlock at = chains[chain];
    while (at != null && at != block) {
      before = at;
      at = at.next;
    }
    if (at == null) {
      return;
    }
    if (before == null) {
      chains[chain] = at.next;
    } else {
      before.next = at.next;
    }
    size = size - 1;
  }

  /** All of them. */
  public synchronized List<PartialBlock> all() {
    List<PartialBlock> all = new ArrayList<>(size);
    if (size > 0) {
      for (PartialBlock block : chains) {
        for (PartialBlock at = block; at != null; at = at.next) {
          all.add(at);
        }
      }
    }
    return all;
  }

  /** How many. */
  public int size() {
    return size;
  }

  // Ids are hashes; any bits of them are as good as others.
  private static int chain(long idLow) {
    return (int) idLow & (CHAINS - 1);
  }
}
