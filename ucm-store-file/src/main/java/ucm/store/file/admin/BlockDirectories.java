package ucm.store.file.admin;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.WholeBlocks;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileOperations;
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
    return roots.stream().map(root -> FoundDirectory.of(kind, files, root)).toList();
  }

  @Override
  public List<DirectorySummary> summarize(Observer observer) {
    AtomicLong seen = new AtomicLong();
    List<DirectorySummary> summaries = new ArrayList<>();
    for (FoundDirectory directory : found()) {
      DirectorySurvey survey = new DirectorySurvey(directory, observer, seen);
      directory.walk("inspect", WALK_THREADS, observer, survey);
      summaries.add(survey.summary());
    }
    return summaries;
  }

  @Override
  public void list(Observer observer, Consumer<StoredBlock> visitor) {
    AtomicLong seen = new AtomicLong();
    for (FoundDirectory directory : found()) {
      directory.walk(
          "inspect",
          WALK_THREADS,
          observer,
          inspection -> {
            StoredBlock block = inspection.stored(directory.root());
            synchronized (seen) {
              visitor.accept(block);
              observer.at(seen.incrementAndGet(), 0);
            }
          });
    }
  }

  @Override
  public VerifyResult verify(VerifyPlan plan, Observer observer, Consumer<Damage> found) {
    long limit = plan.maxBytesPerSecond();
    return new DirectoryRead(found(), realName, plan.threads(), limit, observer, found)
        .verify(plan.quarantine());
  }

  @Override
  public AdoptResult adopt(AdoptPlan plan, Observer observer, Consumer<Damage> failed) {
    long limit = plan.maxBytesPerSecond();
    return new DirectoryRead(found(), realName, plan.threads(), limit, observer, failed)
        .adopt(layout, plan.dryRun());
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
    return new DirectoryCollect(this, found(), plan.dryRun(), observer)
        .run(plan.target(hasOwnLimit() ? this::keep : null, kind.key("capacity_gb")));
  }

  /** What the engines' collector would keep. */
  private long keep(long used) {
    double threshold = gc.triggerThresholdRatio() * capacityGb * SpaceLimit.GB;
    double keep = used - Math.max(gc.recyclePercent() * used, used - threshold);
    return used > threshold ? (long) keep : used;
  }
}
