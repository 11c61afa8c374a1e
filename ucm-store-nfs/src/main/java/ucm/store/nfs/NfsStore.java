package ucm.store.nfs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;

/**
 * Keeps blocks in files of a network file system or a local disk, and moves memory of a device to and from
 * them in one stage, as the original's {@code UcmNfsStore} does. A last stage.
 *
 * <p>Host memory goes straight to and from the files. Device memory goes through {@link Staging}: a dump's
 * task ends when the bytes have left the device, and {@code flush} says what has become of them. A block
 * shows when it is committed, which is when all of its shards are written; one that could not be written
 * leaves nothing.
 */
@StoreName(NfsStore.NAME)
public final class NfsStore extends FileStore {

  static final String NAME = "Nfs";
  static final StoreKind KIND = new StoreKind(NAME, false);

  private static final Logger LOG = LoggerFactory.getLogger(NfsStore.class);
  private static final int MICROSECOND_DIGITS = 6;

  private final ReentrantLock closing = new ReentrantLock();
  private final AtomicLong lastTask = new AtomicLong();
  private @Nullable NfsConfig config;
  private volatile @Nullable Staging staging;

  /** A store that is not configured. */
  public NfsStore() {
    this(new LibcFileOperations());
  }

  /** A store on other system calls; they see the names that the files really have. */
  public NfsStore(FileOperations calls) {
    super(KIND, new NfsTree(new NfsFiles(calls)));
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return NfsConfig.keys(super.configKeys());
  }

  @Override
  public void configure(StoreConfig from) {
    StoreConfig ofFiles = NfsConfig.ofFiles(from);
    super.configure(ofFiles);
    config = NfsConfig.from(ofFiles).orElse(null);
  }

  @Override
  public StoreDirectories directories(StoreConfig from) {
    return new NfsDirectories(super.directories(NfsConfig.ofFiles(from)));
  }

  /** Whether there is a folder of a block as only this store names them. */
  @Override
  public boolean recognizes(Path directory) {
    try (Stream<Path> folders = Files.list(directory.resolve("data"))) {
      return folders.anyMatch(
          folder -> NfsTree.isBlockFolder(String.valueOf(folder.getFileName())));
    } catch (IOException | UncheckedIOException e) {
      return false;
    }
  }

  @Override
  public void open(StoreContext context) {
    super.open(context);
    NfsConfig known = config;
    if (known == null || known.isScheduler()) {
      return;
    }
    try {
      staging = new Staging(known, new ToFiles(), context);
    } catch (RuntimeException | Error e) {
      super.close();
      throw e;
    }
  }

  @Override
  public Task load(Transfer transfer) {
    return submit(transfer, false);
  }

  @Override
  public Task dump(Transfer transfer) {
    return submit(transfer, true);
  }

  /** What the staging moves on. */
  private final class ToFiles implements Staging.FileMover {

    @Override
    public Task load(Transfer transfer) {
      return NfsStore.super.load(transfer);
    }

    @Override
    public Task dump(Transfer transfer) {
      return NfsStore.super.dump(transfer);
    }

    @Override
    public void dumpFailed(long idHigh, long idLow, Throwable why) {
      try {
        NfsStore.super.dumpFailed(idHigh, idLow, why);
      } catch (StoreClosedException e) {
        LOG.warn("Nfs closes with a block not stored: {}", why.getMessage());
      }
    }
  }

  private Task submit(Transfer transfer, boolean isDump) {
    long id = lastTask.incrementAndGet();
    long start = System.nanoTime();
    Staging open = staging;
    if (open != null) {
      open.require(transfer);
    }
    Task task =
        open == null || transfer.isHost()
            ? new NumberedTask(id, isDump ? super.dump(transfer) : super.load(transfer))
            : open.submit(id, transfer, isDump);
    if (LOG.isInfoEnabled()) {
      task.whenTerminal(() -> log(id, transfer, isDump, System.nanoTime() - start));
    }
    return task;
  }

  /** The line of the original. */
  private static void log(long id, Transfer transfer, boolean isDump, long nanos) {
    BigDecimal seconds =
        BigDecimal.valueOf(TimeUnit.NANOSECONDS.toMicros(nanos), MICROSECOND_DIGITS);
    LOG.info(
        "[UCMNFSSTORE] [I] Task({},{},{},{}) finished, elapsed {}s",
        id,
        isDump ? "D2S" : "S2D",
        transfer.shardCount(),
        transfer.byteSize(),
        seconds.toPlainString());
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    Staging open = staging;
    long start = System.nanoTime();
    long staged = open == null ? 0 : open.flush(timeout);
    Duration left = timeout.minusNanos(System.nanoTime() - start);
    FlushResult found = super.flush(left.isNegative() ? Duration.ZERO : left);
    return staged == 0
        ? found
        : new FlushResult(
            found.pendingBlocks() + staged,
            found.failedBlocks(),
            found.failedCount(),
            found.cause());
  }

  @Override
  public void close() {
    // What cannot be waited for is kept for the life of the process.
    boolean interrupted = Thread.interrupted();
    // The second close waits for the first, as with the files.
    closing.lock();
    try {
      Staging open = staging;
      if (open != null) {
        open.close();
        interrupted |= Thread.interrupted();
      }
      super.close();
      if (open != null) {
        open.release();
      }
    } finally {
      closing.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
