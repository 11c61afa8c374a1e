package ucm.api.admin;

import java.util.BitSet;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreException;

/**
 * The directories of a storage stage, for people: what is in them, whether it is whole, and how to
 * make room. See {@link DirectoryStore}.
 *
 * <p>Engines may read and write in the directories at the same time. An implementation must take what
 * vanishes meanwhile for gone, not for damaged; must not change what decides which blocks are coldest;
 * and must not touch what a living writer is writing. Nothing on disk changes but by {@link #collect},
 * by {@link #adopt}, by {@link #remove}, by {@link WholeBlocks#write}, and by {@link #verify} when it is asked
 * to move what is damaged aside.
 *
 * <p>All methods block until done. One call at a time. They call their observer and consumer on one
 * thread at a time. All throw {@link StoreException} when a directory is missing or cannot be read,
 * with its name and what to do.
 */
public interface StoreDirectories {

  /** Is told how far long work is, and may end it. */
  interface Observer {

    /**
     * Some of the work is done.
     *
     * @param done blocks, or bytes for {@link #verify}; never decreases within a part of the work
     * @param total how many there will be; 0 when not known
     */
    void at(long done, long total);

    /** Whether the work should end as soon as possible, with what is done by then. Thread-safe. */
    default boolean isStopped() {
      return false;
    }
  }

  /**
   * How to verify.
   *
   * @param threads threads that read, at least 1
   * @param maxBytesPerSecond most bytes to read in a second, over all threads; 0 is without limit
   * @param quarantine whether to move what is damaged out of the way of engines, as they do themselves
   */
  record VerifyPlan(int threads, long maxBytesPerSecond, boolean quarantine) {}

  /**
   * A file that is not what it should be.
   *
   * @param path of the file
   * @param reason what is wrong
   * @param isDamaged false when it could not be read, so that nothing is known about it
   * @param isMoved whether it was moved aside
   */
  record Damage(String path, String reason, boolean isDamaged, boolean isMoved) {}

  /**
   * What was verified.
   *
   * @param blocks blocks whose bytes are right
   * @param bytes bytes read
   * @param unverified blocks without checksums, of which nothing is known
   * @param damaged damaged blocks
   * @param unreadable blocks that could not be read
   * @param isComplete false when the observer ended the work early
   */
  record VerifyResult(
      long blocks,
      long bytes,
      long unverified,
      long damaged,
      long unreadable,
      boolean isComplete) {}

  /**
   * How much room to make.
   *
   * @param keepBytes how much may stay in all directories together; null without such a bound
   * @param keepShare which share of what is used at the start may stay, 0 to 1; null without. With
   *     neither, the configured rules decide ({@link #hasOwnLimit})
   * @param dryRun whether to find out only
   */
  record CollectPlan(@Nullable Long keepBytes, @Nullable Double keepShare, boolean dryRun) {

    /**
     * Says how much may stay of what is used.
     *
     * @param configured the configured rules; null when there are none
     * @param key what they would be configured by
     * @throws StoreException when nothing says it
     */
    public LongUnaryOperator target(@Nullable LongUnaryOperator configured, String key) {
      Long bytes = keepBytes;
      Double share = keepShare;
      if (bytes != null) {
        return used -> bytes;
      }
      if (share != null) {
        return used -> (long) (share * used);
      }
      if (configured == null) {
        throw new StoreException(
            "how much may stay is not said, as " + key + " is 0: name an amount");
      }
      return configured;
    }
  }

  /**
   * What was removed, or would have been.
   *
   * @param usedBytesBefore what was used once the leftovers of dead writers were gone; they are still
   *     counted in a dry run
   * @param targetBytes how much may stay
   * @param removedBlocks blocks removed
   * @param removedBytes what they took
   * @param removedTempFiles leftovers of dead writers that were removed
   * @param isComplete false when the observer ended the work early
   */
  record CollectResult(
      long usedBytesBefore,
      long targetBytes,
      long removedBlocks,
      long removedBytes,
      long removedTempFiles,
      boolean isComplete) {}

  /** Says what each directory holds, in the order given. */
  List<DirectorySummary> summarize(Observer observer);

  /** Shows every block, in any order. */
  void list(Observer observer, Consumer<StoredBlock> visitor);

  /**
   * Reads every block and compares its checksums. Reading does not count as use.
   *
   * @param found is told of each file that is damaged or cannot be read
   */
  VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found);

  /** Whether the configuration says by itself how much may stay. */
  boolean hasOwnLimit();

  /**
   * Removes what dead writers left, and then blocks, the one used longest ago first, in the order and
   * under the lease of the engines' own collectors.
   *
   * @throws StoreException also when another process holds the lease
   */
  CollectResult collect(CollectPlan plan, Observer observer);

  /**
   * How to give checksums to blocks that have none.
   *
   * @param threads threads that read, at least 1
   * @param maxBytesPerSecond most bytes to read in a second, over all threads; 0 is without limit
   * @param dryRun whether to find out only
   */
  record AdoptPlan(int threads, long maxBytesPerSecond, boolean dryRun) {}

  /**
   * What was given checksums, or would have been.
   *
   * @param adopted blocks that have checksums now
   * @param bytes what these blocks hold
   * @param verifiable blocks that had checksums before
   * @param skipped files without checksums whose size is not that of a block; they are as they were
   * @param failed files that are damaged, or could not be read or written
   * @param isComplete false when the observer ended the work early
   */
  record AdoptResult(
      long adopted, long bytes, long verifiable, long skipped, long failed, boolean isComplete) {}

  /**
   * Gives blocks without checksums, as the original writes them, checksums of the bytes that they have
   * now: from then on engines believe these bytes, and notice what changes later. The layout is the
   * configured one, else that of the other blocks of the same size in the directories.
   *
   * @param failed is told of each file that failed
   * @throws StoreException also when nothing tells the layout, or the store has no such files
   */
  default AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    throw new StoreException("all blocks of this store have checksums: there are none to adopt");
  }

  /**
   * Removes blocks, of whatever layout.
   *
   * @return which of them were there, and are not any more
   */
  default BitSet remove(BlockIds ids) {
    throw new StoreException(
        "blocks in directories are removed from a pipeline: name its file with --config");
  }

  /** Opens the blocks to be copied from here, or to here. */
  default WholeBlocks wholeBlocks() {
    throw new StoreException("blocks of this store cannot be copied");
  }
}
