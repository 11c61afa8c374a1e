package ucm.store.file.format;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.StoredLayout;

/**
 * Judges files without a footer by their sizes. Nothing in such a file says that it is whole; those of
 * the original are blocks of one size, or of few. One of another size than all others, or of that of a
 * file with a footer, was cut off or damaged. Not thread-safe.
 */
public final class SizeEvidence {

  // By size, how many files without a footer have it.
  private final Map<Long, Long> bare = new HashMap<>();
  private final Map<Long, Long> blockSizeOfFile = new HashMap<>();
  private final Set<Long> blockSizes = new HashSet<>();

  /** Adds a file with a footer. */
  public void addChecked(long fileSize, StoredLayout layout) {
    blockSizeOfFile.put(fileSize, layout.blockSize());
    blockSizes.add(layout.blockSize());
  }

  /** Adds a file without a footer. */
  public void addBare(long fileSize) {
    bare.merge(fileSize, 1L, Long::sum);
  }

  /** Says why a file without a footer is no whole block, once all files are known; or null. */
  @Nullable
  public String fault(long fileSize) {
    if (fileSize == 0) {
      return "it is empty";
    }
    if (blockSizes.contains(fileSize)) {
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
        !blockSizes.isEmpty() || bare.values().stream().anyMatch(files -> files > 1);
    return standsAlone
        ? "it has no footer, and its size of " + fileSize + " bytes is that of no other block here"
        : null;
  }

  /** How many files without a footer are no whole blocks, and how many bytes the others hold. */
  public Sums sums() {
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
    return new Sums(faulty, whole, bytes);
  }

  /**
   * Sums over the files without a footer.
   *
   * @param faulty files that are no whole blocks
   * @param whole the others
   * @param wholeBytes what the others hold
   */
  public record Sums(long faulty, long whole, long wholeBytes) {}
}
