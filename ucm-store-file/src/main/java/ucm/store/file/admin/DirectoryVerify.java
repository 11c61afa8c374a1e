package ucm.store.file.admin;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyPlan;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
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

  /** Stops the work as the other does, and reports nothing. */
  static Observer quiet(Observer observer) {
    return new Observer() {
      @Override
      public void at(long done, long total) {}

      @Override
      public boolean isStopped() {
        return observer.isStopped();
      }
    };
  }

  /** Waits no longer than an instant at a time once the work is to end. */
  static ReadRateLimit limit(long maxBytesPerSecond, Observer observer) {
    return new ReadRateLimit(
        maxBytesPerSecond,
        System::nanoTime,
        nanos -> {
          long end = System.nanoTime() + nanos;
          long left = nanos;
          while (left > 0 && !observer.isStopped()) {
            LockSupport.parkNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(100)));
            left = end - System.nanoTime();
          }
        });
  }

  VerifyResult run(Iterable<FoundDirectory> directories) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, plan.threads(), quiet(observer));
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
    public void block(String folder, String name, BlockInspection inspection) {
      StoredLayout layout = inspection.layout();
      if (layout != null) {
        bytes += layout.blockSize();
        evidence.addChecked(inspection.stat().size(), layout);
      } else if (inspection.fault() == null) {
        evidence.addBare(inspection.stat().size());
      }
    }

    @Override
    public void other(String folder, String name, FileKind kind) {}

    @Override
    public void unreadable(String path, FileException fault) {}
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

    private void verify(String folder, String name) {
      String path = directory.path(folder, name);
      BlockIds id = BlockIds.ofHex(name);
      try (@Nullable BlockInspection inspection =
          BlockInspection.at(files, path, id.high(0), id.low(0), DirectoryWalk.memory())) {
        if (inspection == null) {
          return;
        }
        StoredLayout layout = inspection.layout();
        String fault = inspection.fault();
        if (layout != null) {
          fault = inspection.verify(limit);
        } else if (fault == null) {
          fault = sizes.fault(inspection.stat().size());
        }
        ended(folder, id, path, inspection, layout, fault);
      } catch (FileException e) {
        unreadable(path, e);
      }
    }

    private void ended(
        String folder,
        BlockIds id,
        String path,
        BlockInspection inspection,
        @Nullable StoredLayout layout,
        @Nullable String fault) {
      synchronized (DirectoryVerify.this) {
        bytes += layout == null ? 0 : layout.blockSize();
        if (fault != null && !inspection.isStillThere()) {
          // Removed or replaced since: what was read is no block any more.
          fault = null;
        } else if (fault != null) {
          damaged++;
          found.accept(new Damage(path, fault, true, plan.quarantine() && move(folder, id)));
        } else if (layout == null) {
          unverified++;
        } else {
          blocks++;
        }
        observer.at(bytes, totalBytes);
      }
    }

    private boolean move(String folder, BlockIds id) {
      Quarantine quarantine =
          quarantines.computeIfAbsent(
              FoundDirectory.digits(folder),
              digits ->
                  new Quarantine(
                      files,
                      new BlockPaths(kind.name(), List.of(directory.root()), digits),
                      FileStoreMetrics.of(StoreMetrics.NONE)));
      try {
        quarantine.moveAside(id.high(0), id.low(0));
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
