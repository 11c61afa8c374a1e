package ucm.store.file.admin;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.block.Quarantine;
import ucm.store.file.format.BlockPaths;

/**
 * Reads the blocks of directories and compares their checksums. Each directory is gone through twice:
 * first the footers are read, which tells how much there is and which sizes are plausible, then
 * everything.
 */
final class DirectoryVerify {

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryVerify.class);

  private final DirectoryWalk walk;
  private final VerifyPlan plan;
  private final Consumer<Damage> found;
  private final ReadRateLimit limit;

  // Guarded by this while a walk is under way.
  private long blocks;
  private long bytes;
  private long totalBytes;
  private long unverified;
  private long damaged;
  private long unreadable;

  DirectoryVerify(DirectoryWalk walk, VerifyPlan plan, Consumer<Damage> found) {
    this.walk = walk;
    this.plan = plan;
    this.found = found;
    this.limit = ReadRateLimit.of(plan.maxBytesPerSecond(), walk.observer());
  }

  VerifyResult run(Iterable<FoundDirectory> directories) {
    List<Pass> passes = new ArrayList<>();
    for (FoundDirectory directory : directories) {
      FoundFiles known = new FoundFiles();
      walk.run("inspect", directory, known);
      passes.add(new Pass(directory, known));
      totalBytes += known.checkedBytes();
    }
    passes.forEach(pass -> walk.run("verify", pass.directory, pass));
    boolean isComplete = !walk.observer().isStopped();
    return new VerifyResult(blocks, bytes, unverified, damaged, unreadable, isComplete);
  }

  private final class Pass implements DirectoryWalk.Visitor {

    private final FoundDirectory directory;
    private final FoundFiles sizes;

    Pass(FoundDirectory directory, FoundFiles sizes) {
      this.directory = directory;
      this.sizes = sizes;
    }

    @Override
    public void block(BlockFile file, BlockInspection inspection) {
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
        walk.observer().at(bytes, totalBytes);
      }
    }

    private boolean move(BlockFile file) {
      int digits = FoundDirectory.digits(file.folder());
      BlockPaths paths = new BlockPaths(walk.kind().name(), List.of(directory.root()), digits);
      try {
        var _ = Quarantine.moveAside(walk.files(), paths, file.idHigh(), file.idLow());
        return true;
      } catch (FileException e) {
        LOG.warn("{} cannot move a damaged block aside: {}", walk.kind().name(), e.getMessage());
        return false;
      }
    }

    @Override
    public void unreadable(String path, FileException fault) {
      synchronized (DirectoryVerify.this) {
        unreadable++;
        found.accept(new Damage(path, String.valueOf(fault.getMessage()), false, false));
      }
    }
  }
}
