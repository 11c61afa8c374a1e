package ucm.store.file.admin;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreKeys;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.space.SpaceLimit;

/** The administration of directories of blocks, with or without an engine at work in them. */
public final class BlockDirectories implements StoreDirectories {

  private static final int WALK_THREADS = 4;

  private final StoreKind kind;
  private final FileOperations files;
  private final List<String> roots;
  private final double capacityGb;
  private final FileStoreConfig.Gc gc;
  private final @Nullable BlockLayout layout;

  private BlockDirectories(
      StoreKind kind,
      FileOperations files,
      List<String> roots,
      double capacityGb,
      FileStoreConfig.Gc gc,
      @Nullable BlockLayout layout) {
    this.layout = layout;
    this.kind = kind;
    this.files = files;
    this.roots = roots;
    this.capacityGb = capacityGb;
    this.gc = gc;
  }

  /** Reads what is configured; faults are recorded in {@code config}. */
  public static BlockDirectories of(StoreKind kind, FileOperations files, StoreConfig config) {
    FileStoreKeys keys = kind.keys();
    return new BlockDirectories(
        kind,
        files,
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
    List<DirectorySummary> summaries = new ArrayList<>();
    DirectoryWalk walk = new DirectoryWalk(kind, files, WALK_THREADS, observer);
    for (FoundDirectory directory : found()) {
      DirectorySurvey survey = new DirectorySurvey(files, directory);
      walk.run(directory, survey);
      summaries.add(survey.summary());
    }
    return summaries;
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    DirectoryWalk walk = new DirectoryWalk(kind, files, WALK_THREADS, observer);
    for (FoundDirectory directory : found()) {
      walk.run(directory, new Listing(directory, visitor));
    }
  }

  /** Shows blocks. */
  private record Listing(FoundDirectory directory, Consumer<StoredBlock> visitor)
      implements DirectoryWalk.Visitor {

    @Override
    public void block(BlockFile file, BlockInspection inspection) {
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
    }

    @Override
    public void unreadable(String path, FileException fault) {
      throw new StoreException(
          fault.getMessage() + "; run this as the user that the engines run as", fault);
    }
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    return new DirectoryVerify(kind, files, plan, observer, found, limit).run(found());
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    ReadRateLimit limit = ReadRateLimit.of(plan.maxBytesPerSecond(), observer);
    return new DirectoryAdopt(kind, files, plan, observer, failed, limit).run(found(), layout);
  }

  @Override
  public boolean hasOwnLimit() {
    return capacityGb > 0;
  }

  @Override
  public CollectResult collect(CollectPlan plan, Observer observer) {
    FolderWalk walk = new FolderWalk(kind, Math.max(1, gc.concurrency() / roots.size()));
    DirectoryCollect collect =
        new DirectoryCollect(kind, files, found(), walk, plan.dryRun(), observer);
    Long keepBytes = plan.keepBytes();
    Double keepShare = plan.keepShare();
    if (keepBytes != null) {
      return collect.run(used -> keepBytes, gc.untilDone());
    }
    if (keepShare != null) {
      return collect.run(used -> (long) (keepShare * used), gc.untilDone());
    }
    if (!hasOwnLimit()) {
      throw new StoreException(
          "how much may stay is not said, as " + kind.key("capacity_gb") + " is 0: name an amount");
    }
    return collect.run(this::keep, gc);
  }

  /** What the engines' collector would keep. */
  private long keep(long used) {
    double threshold = gc.triggerThresholdRatio() * capacityGb * SpaceLimit.GB;
    double keep = used - Math.max(gc.recyclePercent() * used, used - threshold);
    return used > threshold ? (long) keep : used;
  }
}
