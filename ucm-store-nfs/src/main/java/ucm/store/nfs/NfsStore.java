package ucm.store.nfs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;
import ucm.store.nfs.Staging.StagedTask;

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
  protected StoreConfig commonNames(StoreConfig given) {
    return NfsConfig.ofFiles(given);
  }

  @Override
  protected void doConfigure(StoreConfig ofFiles) {
    super.doConfigure(ofFiles);
    config = NfsConfig.from(ofFiles).orElse(null);
  }

  @Override
  protected String realName(String path) {
    return NfsTree.realName(path);
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
  protected void doOpen(StoreContext context) {
    super.doOpen(context);
    NfsConfig known = config;
    if (known == null || isScheduler()) {
      return;
    }
    try {
      staging = new Staging(known, value(CommonKeys.WAITING_QUEUE_DEPTH), this, context);
    } catch (RuntimeException | Error e) {
      super.doClose();
      throw e;
    }
  }

  /** Starts to move shards between host memory and files, on behalf of a task. */
  Task move(StagedTask task, Transfer inHost) {
    return moveFor(task, inHost);
  }

  /** Has the next flush report blocks that will not be written. */
  void failed(BlockIds blocks, @Nullable Throwable why) {
    for (int i = 0; i < blocks.size(); i++) {
      dumpFailed(blocks.high(i), blocks.low(i), why);
    }
  }

  /** The files have all of a dump that they will have. */
  void moved(StagedTask dump) {
    settled(dump);
  }

  @Override
  protected boolean takesDeviceMemory() {
    return true;
  }

  @Override
  protected TransferTask newTask(long id, Transfer transfer, boolean isDump) {
    Staging open = staging;
    if (open != null) {
      open.device.require(transfer);
    }
    TransferTask task =
        open == null || transfer.isHost()
            ? super.newTask(id, transfer, isDump)
            : new StagedTask(id, transfer, open);
    if (LOG.isInfoEnabled()) {
      long start = System.nanoTime();
      task.whenTerminal(() -> log(id, transfer, isDump, System.nanoTime() - start));
    }
    return task;
  }

  @Override
  protected void start(TransferTask task) {
    if (task instanceof StagedTask staged) {
      staged.start();
    } else {
      super.start(task);
    }
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

  /** What cannot be waited for is kept for the life of the process. */
  @Override
  protected void doClose() {
    Staging open = staging;
    if (open != null) {
      open.close();
    }
    super.doClose();
    if (open != null) {
      open.release();
    }
  }
}
