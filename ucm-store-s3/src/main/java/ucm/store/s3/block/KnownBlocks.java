package ucm.store.s3.block;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;

/**
 * Blocks that this process stored or loaded a moment ago, so that they need not be asked for; and those that it
 * found damaged, which are not there until they are stored again. Thread-safe.
 */
public final class KnownBlocks {

  private static final int MOST = 1 << 18;
  private static final int MOST_DAMAGED = 1 << 14;

  private final long keepNanos;
  private final LongSupplier clock;
  // Guarded by this, as is what follows. When they were seen, the longest ago first.
  private final SequencedMap<BlockIds, Long> seen = new LinkedHashMap<>();
  private final Set<BlockIds> damaged = new HashSet<>();
  private long removals;
  private long stored;

  public KnownBlocks(long keepNanos, LongSupplier clock) {
    this.keepNanos = keepNanos;
    this.clock = clock;
  }

  /** How often blocks were removed: to be handed to {@link #seen} when an answer has come. */
  synchronized long removals() {
    return removals;
  }

  /** Notes a block that is there, unless some were removed since the question was asked. */
  synchronized void seen(BlockIds id, long since) {
    if (keepNanos > 0 && removals == since) {
      long now = clock.getAsLong();
      seen.putLast(id, now);
      damaged.remove(id);
      while (seen.size() > MOST || now - seen.firstEntry().getValue() >= keepNanos) {
        seen.pollFirstEntry();
      }
    }
  }

  /** A block is not there any more. */
  synchronized void forget(BlockIds id) {
    seen.remove(id);
  }

  /** This process removed a block. */
  public synchronized void removed(BlockIds id) {
    seen.remove(id);
    damaged.remove(id);
    removals++;
  }

  /** What is there of a block cannot be used. */
  synchronized void damaged(BlockIds id) {
    seen.remove(id);
    if (damaged.size() < MOST_DAMAGED) {
      damaged.add(id);
    }
  }

  /** A block was stored, whatever was there before. */
  synchronized void stored(BlockIds id) {
    damaged.remove(id);
    stored++;
  }

  /** How many blocks this process has stored. */
  public synchronized long storedBlocks() {
    return stored;
  }

  /** Whether what is there of a block cannot be used. */
  synchronized boolean isDamaged(BlockIds id) {
    return damaged.contains(id);
  }

  /** Whether a block was there a moment ago. */
  public synchronized boolean has(BlockIds id) {
    Long at = seen.get(id);
    return at != null && clock.getAsLong() - at < keepNanos;
  }
}
