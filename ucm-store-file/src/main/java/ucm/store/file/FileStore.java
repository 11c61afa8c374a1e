package ucm.store.file;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.IndexLookup;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.thread.ThreadFaults;
import ucm.store.file.admin.BlockDirectories;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;

/**
 * Keeps blocks in files of a file system, local or remote: what the stores have in common that do so.
 * A last stage: it takes no next one, and moves host memory only.
 *
 * <p>A block is durable when it is committed with the configured {@code durability}.
 */
public abstract class FileStore implements Store, IndexLookup, DirectoryStore {

  private final StoreKind kind;
  private final StoreLife life;
  private final FileOperations files;
  private final ReentrantLock closing = new ReentrantLock();
  private @Nullable FileStoreConfig config;
  private volatile @Nullable FileStoreRuntime engine;

  /** A store that is not configured. */
  protected FileStore(StoreKind kind) {
    this(kind, new LibcFileOperations());
  }

  /** A store that is not configured, on other system calls. */
  protected FileStore(StoreKind kind, FileOperations files) {
    this.kind = kind;
    this.life = new StoreLife(kind.name());
    this.files = files;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return kind.keys().all();
  }

  @Override
  public void configure(StoreConfig from) {
    life.configured();
    StoreKind own =
        new StoreKind(kind.name(), kind.isLocal(), new ThreadFaults(kind.name(), this::close));
    config = FileStoreConfig.from(own, from).orElse(null);
  }

  @Override
  public StoreDirectories directories(StoreConfig from) {
    return BlockDirectories.of(kind, files, from);
  }

  @Override
  public Optional<String> refuseNext(@Nullable Store next) {
    return next == null
        ? Optional.empty()
        : Optional.of(
            kind.name() + " is a last stage and takes no next stage; found " + next.name());
  }

  @Override
  public void open(StoreContext context) {
    life.opened();
    // A thread that ends at once closes after this.
    closing.lock();
    try {
      Optional<String> refusal = refuseNext(context.next());
      if (refusal.isPresent()) {
        throw new StoreException(refusal.get());
      }
      FileStoreConfig known = config;
      if (known == null) {
        throw new StoreException(
            kind.name() + " is not opened, because its configuration has errors");
      }
      FileStoreRuntime opened =
          new FileStoreRuntime(known, files, context, () -> openQueues(context));
      opened.start();
      engine = opened;
    } catch (RuntimeException e) {
      life.closed();
      throw e;
    } finally {
      closing.unlock();
    }
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
  public BitSet lookup(BlockIds ids) {
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

  /** Does nothing: the kernel reads ahead on its own. */
  @Override
  public void prefetch(BlockIds ids) {
    life.requireOpen();
  }

  @Override
  public Task load(Transfer transfer) {
    return submit(transfer, false);
  }

  @Override
  public Task dump(Transfer transfer) {
    return submit(transfer, true);
  }

  private Task submit(Transfer transfer, boolean isDump) {
    try {
      return engine().transfers.submit(transfer, isDump);
    } catch (StoreClosedException e) {
      // The workers were closed after we looked, and they have a name of their own.
      throw new StoreClosedException(kind.name());
    }
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return engine().transfers.flush(timeout);
  }

  /**
   * Has the next flush report a block whose dump failed on the way to this store.
   *
   * @throws StoreClosedException when the store is closed
   */
  protected final void dumpFailed(long idHigh, long idLow, Throwable why) {
    engine().failures.record(idHigh, idLow, why);
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
    return engine().remover.remove(ids);
  }

  /** What an open store is made of. */
  final FileStoreRuntime engine() {
    life.requireOpen();
    FileStoreRuntime open = engine;
    if (open == null) {
      life.requireOpen();
      throw new IllegalStateException("Store " + kind.name() + " is still being opened");
    }
    return open;
  }

  @Override
  public void close() {
    // Taken first: a caller that is told of another close must find that one in here.
    closing.lock();
    try {
      FileStoreRuntime open = engine;
      if (life.closed() && open != null) {
        engine = null;
        BoundedClose.run(kind, open::close, open.timeoutNanos());
      }
    } finally {
      closing.unlock();
    }
  }

  @Override
  public String toString() {
    FileStoreConfig known = config;
    return life + (known == null ? "" : " on " + known.directories());
  }
}
