package ucm.store.file.tier;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
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
import ucm.api.StoreMetrics;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.Reloadable;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileStore;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.volume.Breaker;

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
 *   <li>A next stage that fails or hangs is given up for a time ({@link Breaker}); this one goes on.
 * </ul>
 */
public abstract class TieredStore extends AbstractStore
    implements IndexLookup, MemoryProvider, DirectoryStore, Reloadable {

  private static final Logger LOG = LoggerFactory.getLogger(TieredStore.class);
  private static final int LOOKUP_THREADS = 8;

  private final StoreKind kind;
  private final FileStore files;
  private @Nullable TierConfig config;
  private boolean sharesDirectories;
  // Null for a last stage.
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
  public void reload(StoreConfig from) {
    requireOpen();
    files.reload(TierConfig.ofFiles(kind, from));
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
    String name = kind.name();
    // The lower tier is a last stage: one that would take this one as its next is an upper one.
    if (!stage.keepsBytes() || stage.name().equals(name) || stage.refuseNext(this).isEmpty()) {
      return Optional.of(
          ("%1$s takes a last stage below it that keeps blocks somewhere else; found %2$s: use one"
                  + " of them alone, or another stage below, as in %1$s|Nfs")
              .formatted(name, stage.name()));
    }
    String common = CommonKeys.STORAGE_BACKENDS.name();
    if (sharesDirectories
        && stage.configKeys().stream().anyMatch(key -> key.name().equals(common))) {
      return Optional.of(
          ("in %1$s|%2$s both would keep their blocks in storage_backends: name the local"
                  + " directories of %1$s in %3$s, and those of %2$s in storage_backends")
              .formatted(name, stage.name(), TierConfig.Keys.of(kind).directories().name()));
    }
    if (known != null && known.files().indexMaxBlocks() == 0) {
      return Optional.of(
          "in %s|%s the upper tier needs its index, and %s is 0: leave it out"
              .formatted(name, stage.name(), kind.key("index_max_blocks")));
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
    TierMetrics metrics = new TierMetrics(kind, context.metrics());
    long timeoutNanos = timeout().toNanos();
    FileStoreConfig.Health rules = known.files().health();
    LowerTier lower =
        new LowerTier(
            kind,
            stage,
            rules,
            rules.enabled() ? metrics.registry : StoreMetrics.NONE,
            context.nanoClock(),
            newWorkers("tier-lookup", LOOKUP_THREADS),
            timeoutNanos);
    long half = known.stagingBytes() / 2;
    TierMoves down = new TierMoves(layout(), half, files::loadToCopy, lower::dump);
    TierWrites writes =
        new TierWrites(files, lower, down, metrics, this::dumpFailed, this::flushFailed);
    TierMoves up = new TierMoves(layout(), half, lower::loadToCopy, files::dump);
    Promotions promotions = new Promotions(files, lower, up, known.admitsAll(), metrics);
    files.openGuarded(context, ids -> writes.mayGo(ids, timeoutNanos / 2));
    tiers =
        new Tiers(
            files, lower, promotions, writes, known.writesThrough(), metrics, context.nanoClock());
    lower.start();
    if (!isScheduler()) {
      writes.start(newThreads("tier-write").newThread(writes::run));
      newThreads("tier-keep").newThread(promotions::run).start();
    }
  }

  @Override
  protected void logFailure(String message, Throwable fault) {
    LOG.error(message, fault);
  }

  private Tiers tiers() {
    return Objects.requireNonNull(tiers);
  }

  private @Nullable Store next() {
    Tiers both = tiers;
    return both == null ? null : both.lower().next;
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    return next() instanceof MemoryProvider provider ? provider.offerMemory(byteSize) : null;
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    return withNext(ids, files.lookup(ids), LowerTier::lookup);
  }

  /** Asks the next stage about the blocks that were not found here, and adds them. */
  private BitSet withNext(
      BlockIds ids, BitSet found, BiFunction<LowerTier, BlockIds, BitSet> question) {
    Tiers both = tiers;
    if (both != null) {
      Tiers.addMore(ids, found, rest -> question.apply(both.lower(), rest));
    }
    return found;
  }

  /** Follows the run here, then in the next stage, and again as long as one of them goes on with it. */
  @Override
  public int lookupPrefix(BlockIds ids) {
    requireOpen();
    int run = files.lookupPrefix(ids) + 1;
    Tiers both = tiers;
    for (int here = 1; both != null && here > 0 && run < ids.size(); run += here) {
      int below = both.lower().lookupPrefix(ids.slice(run, ids.size())) + 1;
      run += below;
      here = below == 0 ? 0 : files.lookupPrefix(ids.slice(run, ids.size())) + 1;
    }
    return run - 1;
  }

  @Override
  public void notePrompt(BlockIds ids) {
    requireOpen();
    files.notePrompt(ids);
    Tiers both = tiers;
    if (both != null) {
      both.lower().notePrompt(ids);
    }
  }

  @Override
  public BitSet lookupKnown(BlockIds ids) {
    requireOpen();
    return withNext(ids, files.lookupKnown(ids), LowerTier::known);
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
    tiers().load(task);
  }

  @Override
  protected void doDump(TransferTask task) {
    tiers().dump(task);
  }

  /** A block that the upper tier lost and the lower one has is no failure. */
  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    requireOpen();
    Tiers both = tiers;
    if (both == null) {
      return files.flush(timeout);
    }
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    Set<BlockIds> _ = awaitDumps(timeout);
    FlushResult above = files.flush(Duration.ofNanos(left(end)));
    long last = both.writesThrough() ? both.writes().lastOffer() : 0;
    long below = both.writes().flush(last, left(end));
    var _ = tellLost(both, above);
    FlushResult told = super.flush(Duration.ZERO);
    return new FlushResult(
        Math.max(told.pendingBlocks(), above.pendingBlocks() + below),
        told.failedBlocks(),
        told.failedCount(),
        told.cause());
  }

  private static long left(long end) {
    return Math.max(0, end - System.nanoTime());
  }

  /** Tells of blocks that the upper tier lost, unless they are in the lower one; returns how many. */
  private int tellLost(Tiers both, FlushResult above) {
    BlockIds ids = above.failedBlocks();
    int lost = 0;
    for (int i = 0; i < ids.size(); i++) {
      if (!both.lower().hasHad(ids.high(i), ids.low(i))) {
        dumpFailed(ids.high(i), ids.low(i), above.cause());
        lost++;
      }
    }
    return lost;
  }

  @Override
  public boolean hasRoom(long bytes) {
    requireOpen();
    return files.hasRoom(bytes);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return withNext(ids, files.durable(ids), LowerTier::durable);
  }

  @Override
  public boolean canRemove() {
    Store stage = next();
    return stage == null || stage.canRemove();
  }

  /** Removes blocks from the next stage first, so that none comes back from there. */
  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    Tiers both = tiers;
    if (both == null) {
      return files.remove(ids);
    }
    both.writes().forget(ids);
    BitSet gone = both.lower().next.remove(ids);
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
    try {
      if (both != null) {
        drain(both);
        both.lower().close();
      }
    } finally {
      files.close();
    }
  }

  /** Has what was dumped written to the next stage, as far as time goes. */
  private void drain(Tiers both) {
    TierWrites writes = both.writes();
    try {
      if (both.lower().refusal() == null) {
        var _ = writes.await(writes.lastOffer(), timeToClose().toNanos());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    writes.close(timeToClose().toNanos());
    both.promotions().close();
    try {
      both.promotions().dropAll(timeToClose().toNanos());
      FlushResult above = files.flush(Duration.ZERO);
      int lost = tellLost(both, above);
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
    Store stage = next();
    return stage == null ? files.toString() : files + " above " + stage.name();
  }
}
