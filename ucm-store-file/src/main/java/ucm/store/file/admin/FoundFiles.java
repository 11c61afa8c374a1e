package ucm.store.file.admin;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;

/**
 * What the ends of files tell: of those with a footer the layouts, of those without their sizes. Nothing in a file
 * without a footer says that it is whole; those of the original are blocks of one size, or of few. One of another
 * size than all others, or of that of a file with a footer, was cut off or damaged. Thread-safe.
 */
final class FoundFiles implements FoundDirectory.Visitor {

  // Guarded by this. How many files have a layout; how many without a footer have a size.
  private final Map<StoredLayout, Long> layouts = new HashMap<>();
  private final Map<Long, Long> bare = new HashMap<>();
  private final Map<Long, Long> blockSizeOfFile = new HashMap<>();
  private long checkedBytes;

  @Override
  public synchronized void block(BlockInspection inspection) {
    long size = inspection.stat().size();
    StoredLayout layout = inspection.layout();
    if (layout != null) {
      layouts.merge(layout, 1L, Long::sum);
      blockSizeOfFile.put(size, layout.blockSize());
      checkedBytes += layout.blockSize();
    } else if (inspection.fault() == null) {
      bare.merge(size, 1L, Long::sum);
    }
  }

  @Override
  public void unreadable(String path, FileException fault) {
    // Of these nothing is known.
  }

  /** How many files have each layout. */
  synchronized Map<StoredLayout, Long> layouts() {
    return Map.copyOf(layouts);
  }

  /** Bytes of the blocks with footers. */
  synchronized long checkedBytes() {
    return checkedBytes;
  }

  /** The sizes of files without a footer. */
  synchronized Set<Long> bareSizes() {
    return new TreeSet<>(bare.keySet());
  }

  /** Bytes of the files without a footer that have one of some sizes. */
  synchronized long bareBytes(Set<Long> sizes) {
    return sizes.stream().mapToLong(size -> size * bare.getOrDefault(size, 0L)).sum();
  }

  /** Says why a file without a footer is no whole block, once all files are known; or null. */
  synchronized @Nullable String fault(long fileSize) {
    if (fileSize == 0) {
      return "it is empty";
    }
    if (blockSizeOfFile.containsValue(fileSize)) {
      return null;
    }
    Long block = blockSizeOfFile.get(fileSize);
    if (block != null) {
      return "it has the size of a file with a footer, of a block of " + block + " bytes, and none";
    }
    if (bare.getOrDefault(fileSize, 0L) > 1) {
      return null;
    }
    boolean standsAlone =
        !blockSizeOfFile.isEmpty() || bare.values().stream().anyMatch(files -> files > 1);
    return standsAlone
        ? "it has no footer, and its size of " + fileSize + " bytes is that of no other block here"
        : null;
  }

  /** Sums over the files without a footer. */
  synchronized Bare bare() {
    long faulty = 0;
    long whole = 0;
    long bytes = 0;
    for (Map.Entry<Long, Long> size : bare.entrySet()) {
      if (fault(size.getKey()) != null) {
        faulty += size.getValue();
      } else {
        whole += size.getValue();
        bytes += size.getKey() * size.getValue();
      }
    }
    return new Bare(faulty, whole, bytes);
  }

  /**
   * Sums over the files without a footer.
   *
   * @param faulty files that are no whole blocks
   * @param whole the others
   * @param wholeBytes what the others hold
   */
  record Bare(long faulty, long whole, long wholeBytes) {}
}
