package ucm.store.file.admin;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.format.BlockFooter;

/**
 * Writes footers after blocks that have none. The directories are gone through twice: first the ends of
 * the files are read, which tells the layouts and how much there is to do, then the blocks.
 */
final class DirectoryAdopt implements DirectoryWalk.Visitor {

  private final DirectoryWalk walk;
  private final AdoptPlan plan;
  private final Consumer<Damage> failures;
  private final ReadRateLimit limit;
  // By the size of a block.
  private final Map<Long, BlockFooter> formats = new HashMap<>();

  // Guarded by this while a walk is under way.
  private long adopted;
  private long bytes;
  private long verifiable;
  private long skipped;
  private long failed;
  private long totalBytes;

  DirectoryAdopt(DirectoryWalk walk, AdoptPlan plan, Consumer<Damage> failures) {
    this.walk = walk;
    this.plan = plan;
    this.failures = failures;
    this.limit = ReadRateLimit.of(plan.maxBytesPerSecond(), walk.observer());
  }

  /**
   * Does it.
   *
   * @param configured the layout, or null when the blocks with footers are to tell it
   */
  AdoptResult run(List<FoundDirectory> directories, @Nullable BlockLayout configured) {
    FoundFiles found = new FoundFiles();
    directories.forEach(directory -> walk.run("inspect", directory, found));
    if (configured != null) {
      formats.put(configured.blockSize(), new BlockFooter(configured));
    } else {
      found.layouts().keySet().stream()
          .collect(Collectors.groupingBy(StoredLayout::blockSize))
          .forEach(this::addFormat);
    }
    Set<Long> bare = found.bareSizes();
    if (configured == null && !bare.isEmpty() && Collections.disjoint(bare, formats.keySet())) {
      throw new StoreException(
          ("nothing tells how the blocks without checksums are cut, whose files have %s bytes:"
               + " there is no block of that size with checksums, or there are several layouts of"
               + " it. Name block_size, shard_size and tensor_size, as the engine has them, or let"
               + " an engine store one block there first")
              .formatted(bare));
    }
    totalBytes = found.bareBytes(formats.keySet());
    directories.forEach(directory -> walk.run("adopt", directory, this));
    boolean isComplete = !walk.observer().isStopped();
    return new AdoptResult(adopted, bytes, verifiable, skipped, failed, isComplete);
  }

  private void addFormat(long blockSize, List<StoredLayout> layouts) {
    StoredLayout layout = layouts.getFirst();
    // Of two layouts nothing tells the right one, and the sizes of unlike tensors are not kept.
    if (layouts.size() == 1 && layout.tensorSize() > 0) {
      formats.put(
          blockSize,
          new BlockFooter(BlockLayout.uniform(layout.tensorSize(), layout.shardSize(), blockSize)));
    }
  }

  @Override
  public void block(BlockFile file, BlockInspection inspection) {
    long size = inspection.stat().size();
    BlockFooter format = formats.get(size);
    String fault = inspection.fault();
    boolean isBare = inspection.layout() == null && fault == null;
    if (isBare && format != null && !plan.dryRun()) {
      fault = inspection.seal(format, file, limit);
    }
    synchronized (this) {
      if (fault != null) {
        failed++;
        failures.accept(new Damage(file.path(), fault, !isBare, false));
      } else if (!isBare) {
        verifiable++;
      } else if (format == null) {
        skipped++;
      } else {
        adopted++;
        bytes += size;
        walk.observer().at(bytes, totalBytes);
      }
    }
  }

  @Override
  public synchronized void unreadable(String path, FileException fault) {
    failed++;
    failures.accept(new Damage(path, String.valueOf(fault.getMessage()), false, false));
  }
}
