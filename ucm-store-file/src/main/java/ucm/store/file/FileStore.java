package ucm.store.file;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.IndexLookup;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.Reloadable;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.thread.ThreadEnd;
import ucm.store.file.admin.BlockDirectories;
import ucm.store.file.block.FileTask;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;

/**
 * Keeps blocks in files of a file system, local or remote: what the stores have in common that do so.
 * A last stage: it takes no next one, and moves host memory only.
 *
 * <p>A block is durable when it is committed with the configured {@code durability}.
 */
public abstract class FileStore extends AbstractStore
    implements IndexLookup, DirectoryStore, Reloadable {

  private static final Logger LOG = LoggerFactory.getLogger(FileStore.class);
  // Closing files and joining threads comes after what is under way.
  private static final Duration MARGIN = Duration.ofSeconds(1);

  private final StoreKind kind;
  private final FileOperations files;
  private @Nullable FileStoreConfig config;
  private @Nullable Function<BlockIds, BitSet> guard;
  private volatile @Nullable FileStoreRuntime engine;

  /** A store that is not configured. */
  protected FileStore(StoreKind kind) {
    this(kind, new LibcFileOperations());
  }

  /** A store that is not configured, on other system calls. */
  protected FileStore(StoreKind kind, FileOperations files) {
    super(kind.name());
    this.kind = kind;
    this.files = files;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return kind.keys().all();
  }

  @Override
  protected void doConfigure(StoreConfig from) {
    StoreKind own = new StoreKind(kind.name(), kind.isLocal(), this::threadFailed);
    config = FileStoreConfig.from(own, from).orElse(null);
  }

  /** A capacity must have been there when the store was opened, as it keeps no account of its space without. */
  @Override
  public void reload(StoreConfig from) {
    FileStoreRuntime open = engine();
    StoreConfig named = commonNames(from);
    FileStoreConfig changed = FileStoreConfig.from(open.config.kind(), named).orElse(null);
    if (changed == null) {
      return;
    }
    if (changed.capacityGb() > 0 != open.config.capacityGb() > 0) {
      named.reject(
          kind.keys().capacityGb,
          "is 0, which is without limit, before or after: that is decided when the store opens");
    }
    open.reload(changed);
  }

  @Override
  public StoreDirectories directories(StoreConfig from) {
    return BlockDirectories.of(kind, files, this::realName, commonNames(from));
  }

  /** The name on disk of a file of a block, from the one that this store goes by; for messages. */
  protected String realName(String path) {
    return path;
  }

  /**
   * Opens it as the upper one of two tiers, of which it knows nothing: its collector removes a block only when
   * the guard says so.
   *
   * @param by gives the set of those of some blocks that are not lost when they are removed here; may take them
   *     elsewhere first, on the collector's thread
   */
  public final void openGuarded(StoreContext context, Function<BlockIds, BitSet> by) {
    guard = by;
    open(context);
  }

  /** The tier below a guarded store is none of its concern. */
  @Override
  public Optional<String> refuseNext(@Nullable Store stage) {
    return guard == null ? super.refuseNext(stage) : Optional.empty();
  }

  @Override
  protected void doOpen(StoreContext context) {
    FileStoreConfig known = config;
    if (known == null) {
      throw new IllegalStateException(kind.name() + " has an error that was not reported");
    }
    FileStoreRuntime opened =
        new FileStoreRuntime(
            known,
            files,
            context,
            guard,
            this::openTasks,
            this::dumpFailed,
            () -> openQueues(context));
    opened.start();
    engine = opened;
  }

  /** Has no bound of its own: the workers bound what waits for them. */
  @Override
  protected int maxTasks() {
    return Integer.MAX_VALUE;
  }

  /**
   * Says in what other way than by system calls the bytes of files are moved. Called while the store
   * opens, when its directories are there; not for a store that moves none. What it returns is closed
   * when the store is closed, by which time no thread uses it; when opening fails after this, the store
   * that made it closes it.
   *
   * @return null for system calls
   */
  protected @Nullable IoQueues openQueues(StoreContext context) {
    return null;
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    FileStoreRuntime open = engine();
    return open.uses.found(ids, open.lookup.all(ids));
  }

  @Override
  public BitSet lookupKnown(BlockIds ids) {
    FileStoreRuntime open = engine();
    return open.uses.found(ids, open.lookup.known(ids));
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    FileStoreRuntime open = engine();
    return open.uses.found(ids, open.lookup.prefix(ids));
  }

  @Override
  public void notePrompt(BlockIds ids) {
    engine().uses.prompt(ids);
  }

  @Override
  protected TransferTask newTask(long id, Transfer transfer, boolean isDump) {
    return engine().newTask(id, transfer, isDump);
  }

  @Override
  public Task load(Transfer transfer) {
    return noted(super.load(transfer), transfer, false);
  }

  @Override
  public Task dump(Transfer transfer) {
    return noted(super.dump(transfer), transfer, true);
  }

  /** Notes the use of blocks, while the workers are at it; they need not wait for that. */
  private Task noted(Task task, Transfer transfer, boolean isDump) {
    FileStoreRuntime open = engine;
    if (open != null) {
      open.uses.moved(transfer, isDump);
    }
    return task;
  }

  /** Loads blocks to copy them to another stage. That is no use of them: they stay as cold as they are. */
  public final Task loadToCopy(Transfer transfer) {
    return super.load(transfer);
  }

  @Override
  protected void doLoad(TransferTask task) {
    start(task);
  }

  @Override
  protected void doDump(TransferTask task) {
    start(task);
  }

  /** Starts a load or dump. */
  protected void start(TransferTask task) {
    engine().start((FileTask) task);
  }

  /**
   * Moves host memory on behalf of a task of other memory, in the time of a task from now on; also while
   * the store waits for tasks to close.
   *
   * @throws StoreClosedException when the store is closed
   */
  protected final Task moveFor(TransferTask task, Transfer inHost) {
    return opened().move(task, inHost);
  }

  @Override
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending)
      throws InterruptedException {
    engine().flush(lastTask, System.nanoTime() + timeout.toNanos(), pending);
  }

  @Override
  protected void countFailedDump() {
    FileStoreRuntime open = engine;
    if (open != null) {
      open.metrics.failedBlocks.increment();
    }
  }

  @Override
  public boolean hasRoom(long bytes) {
    return engine().hasRoom(bytes);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    // A file has its name only after what durability asks for; the index may know removed ones.
    return engine().lookup.onDisk(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    return engine().remove(ids);
  }

  /** What an open store is made of. */
  final FileStoreRuntime engine() {
    requireOpen();
    return opened();
  }

  private FileStoreRuntime opened() {
    FileStoreRuntime open = engine;
    if (open == null) {
      throw new StoreClosedException(name());
    }
    return open;
  }

  @Override
  protected void logFailure(String message, Throwable fault) {
    LOG.error(message, fault);
  }

  @Override
  protected void closesBefore(int openTasks) {
    LOG.warn(
        "{} closes while the file system still holds {} shards; they end when it lets go",
        name(),
        opened().openShards());
  }

  /**
   * Closes on a thread of its own, so that a file system that hangs holds that thread and not the closing
   * one. What is held then is released when the file system returns, in the order in which it always is:
   * no descriptor, lock or temporary file stays for the life of the process.
   */
  @Override
  protected void doClose() {
    FileStoreRuntime open = engine;
    engine = null;
    FileStoreConfig known = config;
    if (open == null || known == null) {
      return;
    }
    Thread closer = known.kind().newThread("close", 0).start(() -> open.close(this::failedDumps));
    if (!ThreadEnd.await(closer, MARGIN.plus(timeToClose()))) {
      LOG.warn(
          "{} is closed, but the file system holds some of it: what that is ends when the file"
              + " system lets go, and temporary files are removed then or by the next start",
          name());
    }
  }

  @Override
  public String toString() {
    FileStoreConfig known = config;
    return super.toString() + (known == null ? "" : " on " + known.directories());
  }
}
