package ucm.store.file.admin;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.block.Quarantine;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.SizeEvidence;

/**
 * Reads the blocks of directories and compares their checksums. Each directory is gone through twice:
 * first the footers are read, which tells how much there is and which sizes are plausible, then
 * everything.
 */
final class DirectoryVerify {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryVerify.class);

  private final StoreKind kind;
  private final FileOperations files;
  private final VerifyPlan plan;
  private final Observer observer;
  private final Consumer<Damage> found;
  private final ReadRateLimit limit;

  // Guarded by this.
  private long blocks;
  private long bytes;
  private long totalBytes;
  private long unverified;
  private long damaged;
  private long unreadable;

  DirectoryVerify(
      StoreKind kind,
      FileOperations files,
      VerifyPlan plan,
      Observer observer,
      Consumer<Damage> found,
      ReadRateLimit limit) {
    this.kind = kind;
    this.files = files;
    this.plan = plan;
    this.observer = observer;
    this.found = found;
    this.limit = limit;
  }

  VerifyResult run(Iterable<FoundDirectory> directories) {
    DirectoryWalk walk =
        new DirectoryWalk(kind, files, plan.threads(), DirectoryWalk.quiet(observer));
    Map<String, SizeEvidence> sizes = new HashMap<>();
    for (FoundDirectory directory : directories) {
      Sizes known = new Sizes();
      walk.run(directory, known);
      sizes.put(directory.root(), known.evidence);
      totalBytes += known.bytes;
    }
    for (FoundDirectory directory : directories) {
      Pass pass = new Pass(directory, sizes.getOrDefault(directory.root(), new SizeEvidence()));
      walk.eachBlock("verify", directory, pass::verify, pass::unreadable);
    }
    return new VerifyResult(blocks, bytes, unverified, damaged, unreadable, !observer.isStopped());
  }

  /** What the footers tell beforehand. */
  private static final class Sizes implements DirectoryWalk.Visitor {

    final SizeEvidence evidence = new SizeEvidence();
    long bytes;

    @Override
    public void block(BlockFile file, BlockInspection inspection) {
      StoredLayout layout = inspection.layout();
      if (layout != null) {
        bytes += layout.blockSize();
        evidence.addChecked(inspection.stat().size(), layout);
      } else if (inspection.fault() == null) {
        evidence.addBare(inspection.stat().size());
      }
    }
  }

  /** The reading of one directory. */
  private final class Pass {

    private final FoundDirectory directory;
    private final SizeEvidence sizes;
    private final Map<Integer, Quarantine> quarantines = new HashMap<>();

    Pass(FoundDirectory directory, SizeEvidence sizes) {
      this.directory = directory;
      this.sizes = sizes;
    }

    private void verify(BlockFile file, BlockInspection inspection) {
      StoredLayout layout = inspection.layout();
      String fault = inspection.fault();
      if (layout != null) {
        fault = inspection.verify(limit);
      } else if (fault == null) {
        fault = sizes.fault(inspection.stat().size());
      }
      synchronized (DirectoryVerify.this) {
        bytes += layout == null ? 0 : layout.blockSize();
        if (fault != null && inspection.isStillThere()) {
          damaged++;
          boolean isMoved = plan.quarantine() && move(file);
          found.accept(new Damage(file.path(), fault, true, isMoved));
        } else if (fault == null && layout == null) {
          unverified++;
        } else if (fault == null) {
          blocks++;
        }
        // Else it was removed or replaced since: what was read is no block any more.
        observer.at(bytes, totalBytes);
      }
    }

    private boolean move(BlockFile file) {
      Quarantine quarantine =
          quarantines.computeIfAbsent(
              FoundDirectory.digits(file.folder()),
              digits ->
                  new Quarantine(
                      files,
                      new BlockPaths(kind.name(), List.of(directory.root()), digits),
                      new FileStoreMetrics(StoreMetrics.NONE)));
      try {
        quarantine.moveAside(file.idHigh(), file.idLow());
        return true;
      } catch (FileException e) {
        LOG.warn("{} cannot move a damaged block aside: {}", kind.name(), e.getMessage());
        return false;
      }
    }

    private void unreadable(String path, FileException fault) {
      synchronized (DirectoryVerify.this) {
        unreadable++;
        found.accept(new Damage(path, String.valueOf(fault.getMessage()), false, false));
      }
    }
  }
}
