package ucm.store.file.admin;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.block.Quarantine;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.BlockPaths;

/**
 * Reads the blocks of directories, and compares their checksums, or writes some after blocks that have none. The
 * directories are gone through twice: first the ends of the files are read, which tells how much there is, the
 * layouts, and which sizes are plausible, then the blocks.
 */
final class DirectoryRead {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryRead.class);

  private final List<FoundDirectory> directories;
  private final UnaryOperator<String> realName;
  private final int threads;
  private final Observer observer;
  private final ReadRateLimit limit;
  private final Consumer<Damage> told;

  // Guarded by this while a walk is under way.
  private long totalBytes;
  private long bytes;
  private long good;
  private long verifiable;
  private long without;
  private long damaged;
  private long unreadable;

  DirectoryRead(
      List<FoundDirectory> directories,
      UnaryOperator<String> realName,
      int threads,
      long maxBytesPerSecond,
      Observer observer,
      Consumer<Damage> told) {
    this.directories = directories;
    this.realName = realName;
    this.threads = threads;
    this.observer = observer;
    this.limit = ReadRateLimit.of(maxBytesPerSecond, observer);
    this.told = told;
  }

  private FoundFiles inspect(List<FoundDirectory> some) {
    FoundFiles found = new FoundFiles();
    some.forEach(directory -> directory.walk("inspect", threads, observer, found));
    return found;
  }

  private void read(String role, FoundDirectory directory, Consumer<BlockInspection> work) {
    directory.walk(
        role,
        threads,
        observer,
        new FoundDirectory.Visitor() {
          @Override
          public void block(BlockInspection inspection) {
            work.accept(inspection);
          }

          @Override
          public void unreadable(String path, FileException fault) {
            synchronized (DirectoryRead.this) {
              unreadable++;
              tell(path, String.valueOf(fault.getMessage()), false, false);
            }
          }
        });
  }

  private void tell(String path, String reason, boolean isDamaged, boolean isMoved) {
    told.accept(new Damage(realName.apply(path), reason, isDamaged, isMoved));
  }

  /** Compares checksums. */
  VerifyResult verify(boolean quarantine) {
    List<FoundFiles> found =
        directories.stream().map(directory -> inspect(List.of(directory))).toList();
    totalBytes = found.stream().mapToLong(FoundFiles::checkedBytes).sum();
    for (int i = 0; i < found.size(); i++) {
      FoundDirectory directory = directories.get(i);
      FoundFiles sizes = found.get(i);
      read("verify", directory, block -> verify(directory, sizes, block, quarantine));
    }
    return new VerifyResult(good, bytes, without, damaged, unreadable, !observer.isStopped());
  }

  private void verify(
      FoundDirectory directory, FoundFiles sizes, BlockInspection block, boolean quarantine) {
    StoredLayout layout = block.layout();
    String fault = block.fault();
    if (layout != null) {
      fault = block.verify(limit);
    } else if (fault == null) {
      fault = sizes.fault(block.stat().size());
    }
    synchronized (this) {
      bytes += layout == null ? 0 : layout.blockSize();
      if (fault != null && block.isStillThere()) {
        damaged++;
        boolean isMoved = quarantine && move(directory, block.file());
        tell(block.file().path(), fault, true, isMoved);
      } else if (fault == null && layout == null) {
        without++;
      } else if (fault == null) {
        good++;
      }
      // Else it was removed or replaced since: what was read is no block any more.
      observer.at(bytes, totalBytes);
    }
  }

  private static boolean move(FoundDirectory directory, BlockFile file) {
    String store = directory.kind().name();
    int digits = FoundDirectory.digits(file.folder());
    BlockPaths paths = new BlockPaths(store, List.of(directory.root()), digits);
    try {
      var _ = Quarantine.moveAside(directory.files(), paths, file.idHigh(), file.idLow());
      return true;
    } catch (FileException e) {
      LOG.warn("{} cannot move a damaged block aside: {}", store, e.getMessage());
      return false;
    }
  }

  /**
   * Writes footers after blocks that have none.
   *
   * @param configured the layout, or null when the blocks with footers are to tell it
   */
  AdoptResult adopt(@Nullable BlockLayout configured, boolean isDry) {
    FoundFiles found = inspect(directories);
    Map<Long, BlockFooter> formats =
        configured == null
            ? formats(found.layouts().keySet())
            : Map.of(configured.blockSize(), new BlockFooter(configured));
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
    directories.forEach(
        directory ->
            read(
                "adopt",
                directory,
                block -> adopt(formats.get(block.stat().size()), block, isDry)));
    return new AdoptResult(
        good, bytes, verifiable, without, damaged + unreadable, !observer.isStopped());
  }

  /** By the size of a block, what its footer is. */
  private static Map<Long, BlockFooter> formats(Set<StoredLayout> layouts) {
    Map<Long, BlockFooter> formats = new HashMap<>();
    layouts.stream()
        .collect(Collectors.groupingBy(StoredLayout::blockSize))
        .forEach(
            (blockSize, all) -> {
              StoredLayout one = all.getFirst();
              // Of two layouts nothing tells the right one, and the sizes of unlike tensors are
              // not kept.
              if (all.size() == 1 && one.tensorSize() > 0) {
                formats.put(
                    blockSize,
                    new BlockFooter(
                        BlockLayout.uniform(one.tensorSize(), one.shardSize(), blockSize)));
              }
            });
    return formats;
  }

  private void adopt(@Nullable BlockFooter format, BlockInspection block, boolean isDry) {
    String fault = block.fault();
    boolean isBare = block.layout() == null && fault == null;
    if (isBare && format != null && !isDry) {
      fault = block.seal(format, limit);
    }
    synchronized (this) {
      if (fault != null) {
        damaged++;
        tell(block.file().path(), fault, !isBare, false);
      } else if (!isBare) {
        verifiable++;
      } else if (format == null) {
        without++;
      } else {
        good++;
        bytes += block.stat().size();
        observer.at(bytes, totalBytes);
      }
    }
  }
}
