package ucm.store.file.admin;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.admin.WholeBlocks;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreKeys;
import ucm.store.file.config.StoreKind;
import ucm.store.file.space.SpaceLimit;

/**
 * The administration of directories of blocks, with or without an engine at work in them.
 *
 * @param realName gives the name that a file has on disk, for messages
 * @param layout null when it is not configured
 */
public record BlockDirectories(
    StoreKind kind,
    FileOperations files,
    UnaryOperator<String> realName,
    List<String> roots,
    double capacityGb,
    FileStoreConfig.Gc gc,
    @Nullable BlockLayout layout)
    implements StoreDirectories {

  private static final int WALK_THREADS = 4;

  /** Reads what is configured; faults are recorded in {@code config}. */
  public static BlockDirectories of(
      StoreKind kind, FileOperations files, UnaryOperator<String> realName, StoreConfig config) {
    FileStoreKeys keys = kind.keys();
    return new BlockDirectories(
        kind,
        files,
        realName,
        FileStoreConfig.directories(config),
        config.get(keys.capacityGb),
        FileStoreConfig.Gc.from(keys, config),
        config.isSet(CommonKeys.BLOCK_SIZE) ? CommonKeys.layout(config).orElse(null) : null);
  }

  private List<FoundDirectory> found() {
    return roots.stream().map(root -> FoundDirectory.of(files, root)).toList();
  }

  @Override
  public List<DirectorySummary> summarize(Observer observer) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, WALK_THREADS, observer);
    AtomicLong seen = new AtomicLong();
    return found().stream()
        .map(directory -> new DirectorySurvey(walk, directory, seen).summary())
        .toList();
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, WALK_THREADS, observer);
    AtomicLong seen = new AtomicLong();
    for (FoundDirectory directory : found()) {
      walk.run("inspect", directory, new Listing(directory, visitor, observer, seen));
    }
  }

  private record Listing(
      FoundDirectory directory, Consumer<StoredBlock> visitor, Observer observer, AtomicLong seen)
      implements DirectoryWalk.Visitor {

    @Override
    public synchronized void block(BlockFile file, BlockInspection inspection) {
      FileStat stat = inspection.stat();
      StoredLayout layout = inspection.layout();
      visitor.accept(
          new StoredBlock(
              file.idHigh(),
              file.idLow(),
              directory.root(),
              layout == null ? stat.size() : layout.blockSize(),
              stat.allocatedBytes(),
              layout,
              DirectorySurvey.time(stat.lastUseNanos()),
              inspection.fault()));
      observer.at(seen.incrementAndGet(), 0);
    }

    @Override
    public void unreadable(String path, FileException fault) {
      throw new StoreException(
          fault.getMessage() + "; run this as the user that the engines run as", fault);
    }
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, plan.threads(), observer);
    return new DirectoryVerify(walk, plan, withRealNames(found)).run(found());
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, plan.threads(), observer);
    return new DirectoryAdopt(walk, plan, withRealNames(failed)).run(found(), layout);
  }

  private Consumer<Damage> withRealNames(Consumer<Damage> found) {
    return damage ->
        found.accept(
            new Damage(
                realName.apply(damage.path()),
                damage.reason(),
                damage.isDamaged(),
                damage.isMoved()));
  }

  @Override
  public WholeBlocks wholeBlocks() {
    return new WholeFiles(kind, files, found());
  }

  @Override
  public boolean hasOwnLimit() {
    return capacityGb > 0;
  }

  @Override
  public CollectResult collect(CollectPlan plan, Observer observer) {
    int threads = Math.max(1, gc.concurrency() / roots.size());
    DirectoryCollect collect =
        new DirectoryCollect(kind, files, found(), threads, plan.dryRun(), observer);
    return collect.run(plan.target(hasOwnLimit() ? this::keep : null, kind.key("capacity_gb")));
  }

  /** What the engines' collector would keep. */
  private long keep(long used) {
    double threshold = gc.triggerThresholdRatio() * capacityGb * SpaceLimit.GB;
    double keep = used - Math.max(gc.recyclePercent() * used, used - threshold);
    return used > threshold ? (long) keep : used;
  }
}
