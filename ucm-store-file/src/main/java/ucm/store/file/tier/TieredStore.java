package ucm.store.file.tier;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.table.ConcurrentBlockSet;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;
import ucm.store.file.eviction.EvictionGuard;
import ucm.store.file.health.StageHealth;

/**
 * A store of files that may have a next stage. As the last stage it is the store of files and no more. With a
 * next one it is the upper of two tiers:
 *
 * <ul>
 *   <li>A load takes each shard from here, else from the next stage, straight into the caller's memory; what
 *       comes from there is kept here as well.
 *   <li>A dump is written here, and its task ends then. Blocks that find no room here, or cannot be written,
 *       go to the next stage instead.
 *   <li>With {@code write_through} blocks are then read and written to the next stage in the background, and
 *       {@link #flush} waits for that; with {@code write_back}, when they are to be evicted.
 *   <li>No block is evicted here that the next stage does not have.
 *   <li>A next stage that fails or hangs is given up for a time ({@link StageHealth}); this one goes on.
 * </ul>
 */
public abstract class TieredStore extends AbstractStore
    implements IndexLookup, MemoryProvider, DirectoryStore {

  private static final Logger LOG = LoggerFactory.getLogger(TieredStore.class);
  private static final int LOOKUP_THREADS = 8;

  private final StoreKind kind;
  private final FileStore files;
  private @Nullable TierConfig config;
  private boolean sharesDirectories;
  private @Nullable StageHealth health;
  // Null for a last stage.
  private volatile @Nullable Store next;
  private volatile @Nullable Tiers tiers;

  /** A store that is not configured, on a store of files that is not either. */
  protected TieredStore(StoreKind kind, FileStore files) {
    super(kind.name());
    this.kind = kind;
    this.files = files;
  }

  /** The configuration as the store of files knows it, for what looks at its directories. */
  public static StoreConfig ofFiles(StoreKind kind, StoreConfig config) {
    return TierConfig.ofFiles(kind, config);
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return TierConfig.keys(kind, files.configKeys());
  }

  @Override
  protected void doConfigure(StoreConfig from) {
    files.configure(TierConfig.ofFiles(kind, from));
    config = TierConfig.from(kind, from).orElse(null);
    sharesDirectories = TierConfig.sharesDirectories(kind, from);
  }

  @Override
  public StoreDirectories directories(StoreConfig from) {
    return files.directories(TierConfig.ofFiles(kind, from));
  }

  @Override
  public boolean recognizes(Path directory) {
    return files.recognizes(directory);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store stage) {
    TierConfig known = config;
    if (stage == null) {
      return Optional.empty();
    }
    String chain = kind.name() + "|" + stage.name();
    // The lower tier is a last stage: one that would take this one as its next is an upper one.
    if (!stage.keepsBytes()
        || stage.name().equals(kind.name())
        || stage.refuseNext(this).isEmpty()) {
      return Optional.of(
          kind.name()
              + " takes a last stage below it that keeps blocks somewhere else; found "
              + stage.name()
              + ": use one of them alone, or another stage below, as in "
              + kind.name()
              + "|Nfs");
    }
    String own = TierConfig.Keys.of(kind).directories().name();
    String common = CommonKeys.STORAGE_BACKENDS.name();
    boolean isShared =
        stage.configKeys().stream().anyMatch(key -> key.name().equals(common)) && sharesDirectories;
    if (isShared) {
      return Optional.of(
          "in "
              + chain
              + " both would keep their blocks in storage_backends: name the local directories of "
              + kind.name()
              + " in "
              + own
              + ", and those of "
              + stage.name()
              + " in "
              + common);
    }
    if (known != null && known.files().indexMaxBlocks() == 0) {
      return Optional.of(
          "in "
              + chain
              + " the upper tier needs its index, and "
              + kind.key("index_max_blocks")
              + " is 0: leave it out");
    }
    return Optional.empty();
  }

  @Override
  protected void doOpen(StoreContext context) {
    Store stage = context.next();
    if (stage == null) {
      files.open(context);
      return;
    }
    TierConfig known = Objects.requireNonNull(config);
    TierMetrics metrics = TierMetrics.of(kind, context.metrics());
    StageHealth watched =
        new StageHealth(
            kind,
            "the next stage, " + stage.name() + ",",
            known.files().health(),
            context.metrics(),
            context.nanoClock(),
            () -> LowerTier.probe(stage),
            () -> writes().retry());
    LowerTier lower =
        new LowerTier(
            stage, watched, newWorkers("tier-lookup", LOOKUP_THREADS), timeout().toNanos());
    long half = known.stagingBytes() / 2;
    WriteBehind writes =
        new WriteBehind(files, lower, new Staging(layout(), half), metrics, this::dumpFailed);
    Promotions promotions =
        new Promotions(
            files,
            lower,
            new Staging(layout(), half),
            layout().shardCount(),
            known.admitsAll(),
            metrics);
    LowerGuard guard =
        new LowerGuard(lower, writes, metrics, timeout().toNanos() / 2, this::flushFailed);
    files.open(new EvictionGuard.Guarded(context, guard));
    tiers =
        new Tiers(
            files,
            lower,
            promotions,
            writes,
            new ConcurrentBlockSet(Tiers.REMEMBERED_BLOCKS),
            known.writesThrough(),
            metrics,
            context.nanoClock());
    next = stage;
    health = watched;
    watched.start();
    if (!isScheduler()) {
      writes.start(newThreads("tier-write").newThread(writes::run));
      newThreads("tier-keep").newThread(promotions::run).start();
    }
  }

  private Tiers tiers() {
    return Objects.requireNonNull(tiers);
  }

  private WriteBehind writes() {
    return tiers().writes();
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    return next instanceof MemoryProvider provider ? provider.offerMemory(byteSize) : null;
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    BitSet found = files.lookup(ids);
    Tiers both = tiers;
    if (both != null) {
      add(rest -> both.noted(rest, both.lower().lookup(rest)), ids, found);
    }
    return found;
  }

  private interface Question {
    BitSet ask(BlockIds ids);
  }

  /** Asks about the blocks that were not found. */
  private static void add(Question question, BlockIds ids, BitSet found) {
    BitSet rest = new BitSet();
    rest.set(0, ids.size());
    rest.andNot(found);
    BitSet more = question.ask(ids.select(0, rest));
    int n = 0;
    for (int i = rest.nextSetBit(0); i >= 0; i = rest.nextSetBit(i + 1)) {
      found.set(i, more.get(n++));
    }
  }

  /** Follows the run here, then in the next stage, and again as long as one of them goes on with it. */
  @Override
  public int lookupPrefix(BlockIds ids) {
    requireOpen();
    int run = files.lookupPrefix(ids) + 1;
    Tiers both = tiers;
    for (int here = 1; both != null && here > 0 && run < ids.size(); run += here) {
      int below = both.lower().lookupPrefix(ids.slice(run, ids.size())) + 1;
      BitSet there = new BitSet();
      there.set(0, below);
      BitSet _ = both.noted(ids.slice(run, run + below), there);
      run += below;
      here = below == 0 ? 0 : files.lookupPrefix(ids.slice(run, ids.size())) + 1;
    }
    return run - 1;
  }

  @Override
  public @Nullable BitSet lookupKnown(BlockIds ids) {
    requireOpen();
    BitSet known = files.lookupKnown(ids);
    Tiers both = tiers;
    if (both != null && known != null) {
      add(both.lower()::known, ids, known);
    }
    return known;
  }

  @Override
  public Task load(Transfer transfer) {
    requireOpen();
    return tiers == null ? files.load(transfer) : super.load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    requireOpen();
    return tiers == null ? files.dump(transfer) : super.dump(transfer);
  }

  @Override
  protected void doLoad(TransferTask task) {
    TierLoad.start(tiers(), task);
  }

  @Override
  protected void doDump(TransferTask task) {
    TierDump.start(tiers(), task);
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    requireOpen();
    Tiers both = tiers;
    return both == null
        ? files.flush(timeout)
        : new TierFlush(both, openTasks(), this::dumpFailed, this::flushFailed)
            .run(timeout, () -> super.flush(Duration.ZERO));
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    BitSet durable = files.durable(ids);
    Tiers both = tiers;
    if (both != null) {
      add(both.lower()::durable, ids, durable);
    }
    return durable;
  }

  @Override
  public boolean canRemove() {
    Store stage = next;
    return stage == null || stage.canRemove();
  }

  /** Removes blocks from the next stage first, so that none comes back from there. */
  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    Tiers both = tiers;
    Store stage = next;
    if (both == null || stage == null) {
      return files.remove(ids);
    }
    both.writes().forget(ids);
    BitSet gone = stage.remove(ids);
    try {
      both.promotions().dropAll(timeout().toNanos());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      gone.clear();
    }
    gone.and(files.remove(ids));
    return gone;
  }

  @Override
  protected void doClose() throws IOException {
    Tiers both = tiers;
    StageHealth watched = health;
    try {
      if (both != null && watched != null) {
        drain(both);
        watched.close();
      }
    } finally {
      files.close();
    }
  }

  /** Has what was dumped written to the next stage, as far as time goes. */
  private void drain(Tiers both) {
    WriteBehind writes = both.writes();
    try {
      if (both.lower().refusal() == null) {
        long _ = writes.await(writes.lastOffer(), timeToClose().toNanos());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    writes.close(timeToClose().toNanos());
    both.promotions().close();
    try {
      both.promotions().dropAll(timeToClose().toNanos());
      FlushResult above = files.flush(Duration.ZERO);
      int lost = TierFlush.tellLost(both, above, this::dumpFailed);
      if (lost > 0) {
        LOG.warn("{} closes with {} blocks not stored; first cause: {}", this, lost, why(above));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static String why(FlushResult result) {
    Throwable cause = result.cause();
    return cause == null ? "none" : String.valueOf(cause.getMessage());
  }

  @Override
  public String toString() {
    Store stage = next;
    return stage == null ? files.toString() : files + " above " + stage.name();
  }
}
