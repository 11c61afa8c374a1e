package ucm.api.admin;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What one directory of a store holds. All sizes are bytes.
 *
 * @param directory as it was given
 * @param notes what a person should know first: that it is empty, no directory of this store, or
 *     holds a mixture; sentences without a full stop
 * @param blocks whole blocks, as far as that is known without reading their bytes
 * @param payloadBytes what these blocks hold
 * @param usedBytes what all files of the store in this directory take on the volume
 * @param layouts the layouts found, the most frequent first
 * @param unverifiedBlocks those of the blocks that carry no checksums
 * @param faultyFiles files of blocks that are damaged by what they say of themselves
 * @param otherFiles files in folders of blocks that are none of the store's
 * @param livingTempFiles files being written
 * @param deadTempFiles files that were being written when their writer ended
 * @param unknownTempFiles files being written, or left, by a writer that cannot be asked
 * @param quarantinedFiles damaged files that were moved aside
 * @param oldestUse when the block used longest ago was used; null without blocks
 * @param newestUse when a block was last used; null without blocks
 * @param folders folders that hold blocks
 * @param fullestFolder files in the fullest of them
 * @param totalBytes size of the file system; 0 when it does not tell
 * @param freeBytes what is free there for this user
 * @param collector which process removes cold blocks, if one does, in words
 */
public record DirectorySummary(
    String directory,
    List<String> notes,
    long blocks,
    long payloadBytes,
    long usedBytes,
    List<LayoutCount> layouts,
    long unverifiedBlocks,
    long faultyFiles,
    long otherFiles,
    long livingTempFiles,
    long deadTempFiles,
    long unknownTempFiles,
    long quarantinedFiles,
    @Nullable Instant oldestUse,
    @Nullable Instant newestUse,
    int folders,
    long fullestFolder,
    long totalBytes,
    long freeBytes,
    String collector) {

  /** Copies the lists. */
  public DirectorySummary {
    notes = List.copyOf(notes);
    layouts = List.copyOf(layouts);
  }

  /**
   * How many blocks have a layout.
   *
   * @param layout the layout
   * @param blocks the blocks
   */
  public record LayoutCount(StoredLayout layout, long blocks) {}
}
