package ucm.store.file.block;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * The files of blocks: whether one is there, and how it comes to be there. A block is written to a
 * temporary file in its folder, which no other writer writes, and gets its own name when it is whole.
 * Thread-safe.
 */
public final class BlockFiles {

  private static final Logger LOG = LoggerFactory.getLogger(BlockFiles.class);
  private static final byte[] TEMP_SUFFIX =
      BlockPaths.TEMP_SUFFIX.getBytes(StandardCharsets.US_ASCII);
  private static final int SEQUENCE_DIGITS = 10;

  public final FileOperations operations;
  public final BlockPaths paths;
  public final BlockFooter format;
  public final KnownBlocks index;
  public final OpenBlocks opened;

  /** Whether files without a footer are served. */
  public final boolean acceptsUnverified;

  public final SpaceLimit space;
  public final Volumes volumes;
  public final FileStoreMetrics metrics;
  final LongSupplier clock;
  private final FileStoreConfig.Durability durability;
  private final boolean isDirect;
  private final boolean notesUses;
  // By directory, so that one that hangs holds up no other.
  private final Semaphore[] opens;
  private final Semaphore[] commits;
  private final AtomicLong sequence = new AtomicLong();

  // Temporary files of unfinished blocks that are open between two shards: no more than files that
  // are read, as thousands would use up the process's descriptors.
  final AtomicInteger keptTemps = new AtomicInteger();

  /** Has written no file yet. */
  public BlockFiles(
      FileOperations operations,
      BlockPaths paths,
      FileStoreConfig config,
      SpaceLimit space,
      LongSupplier clock,
      Volumes volumes,
      FileStoreMetrics metrics) {
    this.operations = operations;
    this.paths = paths;
    this.volumes = volumes;
    this.metrics = metrics;
    this.clock = clock;
    this.index = new KnownBlocks(config.indexMaxBlocks());
    this.opened = new OpenBlocks(this);
    this.format = new BlockFooter(config.layout());
    this.durability = config.durability();
    this.isDirect = config.ioDirect();
    this.notesUses = config.notesUses();
    this.acceptsUnverified = config.acceptUnverified();
    this.space = space;
    this.opens = new Semaphore[config.directories().size()];
    this.commits = new Semaphore[opens.length];
    Arrays.setAll(opens, i -> new Semaphore(config.openConcurrency()));
    Arrays.setAll(commits, i -> new Semaphore(config.commitConcurrency()));
  }

  /**
   * Asks the file system whether a block has a file of a size that a whole block has, and updates the
   * index. The bytes are checked when they are loaded.
   *
   * @param path is overwritten
   */
  public boolean isPresent(NativePath path, long idHigh, long idLow) {
    long stamp = index.stamp(idHigh, idLow);
    return confirm(path, idHigh, idLow, size(path, idHigh, idLow), stamp);
  }

  /**
   * Has the index say what the size of a block's file says, unless the file was taken away meanwhile.
   *
   * @param path is overwritten
   * @param size as {@link #size} returned it
   * @param stamp from {@link KnownBlocks#stamp}, read before the size
   * @return whether the block is present
   */
  public boolean confirm(NativePath path, long idHigh, long idLow, long size, long stamp) {
    boolean isKnown = index.contains(idHigh, idLow);
    if (!hasBlockSize(size)) {
      return isKnown && checkAgain(path, idHigh, idLow);
    }
    if (isKnown) {
      return true;
    }
    index.add(idHigh, idLow);
    // The index is updated after a file is removed. If that was before, it is updated again.
    return index.stamp(idHigh, idLow) == stamp || checkAgain(path, idHigh, idLow);
  }

  private boolean checkAgain(NativePath path, long idHigh, long idLow) {
    index.remove(idHigh, idLow);
    // A commit since the last check added it, and that must not be forgotten.
    boolean present = hasBlockSize(size(path, idHigh, idLow));
    if (present) {
      index.add(idHigh, idLow);
    }
    return present;
  }

  /** The size of a block's file, as {@link FileOperations#size} returns it. */
  public long size(NativePath path, long idHigh, long idLow) {
    return operations.size(paths.block(path, idHigh, idLow));
  }

  /** {@link #confirm}s a block that was loaded; overwrites the path, does not throw. */
  void loaded(NativePath path, long idHigh, long idLow, long stamp) {
    try {
      var _ = confirm(path, idHigh, idLow, format.fileSize(), stamp);
    } catch (FileException e) {
      LOG.debug("{}: {}", paths.store(), e.getMessage());
    }
  }

  /**
   * Drops a block from the index, and from those kept open, whose file is gone, or was taken away.
   * Overwrites the path, does not throw.
   */
  public void lost(NativePath path, long idHigh, long idLow) {
    opened.drop(idHigh, idLow);
    try {
      // Also when it is not known: a thread that has seen the file may be about to add it.
      if (index.remove(idHigh, idLow)) {
        var _ = checkAgain(path, idHigh, idLow);
      }
    } catch (FileException e) {
      LOG.debug("{}: {}", paths.store(), e.getMessage());
    }
  }

  /**
   * Removes the file of a block, if there is one.
   *
   * @throws FileException when that cannot be done
   */
  public void remove(long idHigh, long idLow) {
    NativePath path = new NativePath();
    operations.requireOwn(paths.folder(path, paths.directoryOf(idHigh, idLow), idHigh));
    long size = size(path, idHigh, idLow);
    boolean removed = size >= 0 && operations.remove(path);
    lost(path, idHigh, idLow);
    if (removed && space.isLimited()) {
      space.used.removed(paths.slot(idHigh, idLow), Folder.inUnits(size));
    }
  }

  /** Whether a file of this size may be that of a whole block that is served. */
  boolean hasBlockSize(long size) {
    return size == format.fileSize() || (acceptsUnverified && isBare(size));
  }

  /** Whether a file of this size has no footer, and may be one of the original's. */
  public boolean isBare(long size) {
    return size == format.layout().blockSize();
  }

  /**
   * As {@link FileOperations#openRead}, when no more than {@code open_concurrency} others are being opened;
   * without the access time where the store notes uses by itself.
   */
  int openRead(NativePath path, long idHigh, long idLow) {
    int directory = paths.directoryOf(idHigh, idLow);
    opens[directory].acquireUninterruptibly();
    try {
      return notesUses ? operations.openUnnoticed(path) : operations.openRead(path);
    } finally {
      opens[directory].release();
    }
  }

  /** A number for the next temporary file. */
  long nextTemp() {
    return sequence.getAndIncrement();
  }

  /** Names a temporary file of a block by a number from {@link #nextTemp}. */
  void nameTemp(NativePath path, long idHigh, long idLow, long number) {
    byte[] token = volumes.of(idHigh, idLow).lease.cover(idHigh);
    paths.block(path, idHigh, idLow).append('.').append(token).append('-');
    path.appendHex(number << (64 - 4 * SEQUENCE_DIGITS), SEQUENCE_DIGITS).append(TEMP_SUFFIX);
  }

  /**
   * Reserves room for a block, creates the temporary file that {@link #nameTemp} named, and the block's
   * folder when it is missing; returns its descriptor. The caller ends it with {@link #commit} or {@link
   * #abandon}. Overwrites {@code folder}.
   *
   * @throws SpaceRefusedException when there is no room
   */
  int createTemp(NativePath path, NativePath folder, long idHigh, long idLow) {
    Volume volume = volumes.of(idHigh, idLow);
    space.reserve(volume, idHigh, idLow, format.fileSize());
    opens[volume.number].acquireUninterruptibly();
    try {
      return create(path, folder, volume, idHigh);
    } catch (Throwable e) {
      space.release(volume, format.fileSize());
      throw e;
    } finally {
      opens[volume.number].release();
    }
  }

  private int create(NativePath path, NativePath folder, Volume volume, long idHigh) {
    int fd = FileOperations.ABSENT;
    try {
      fd = createInFolder(path, folder, volume.number, idHigh);
      // Without a sync the kernel writes the bytes out in parts, also after the rename. A loss of
      // power must not leave a file of the size of the original's, which have no footer.
      operations.allocate(fd, path, format.fileSize());
      setDirect(fd, path);
      return fd;
    } catch (Throwable e) {
      if (fd != FileOperations.ABSENT) {
        closeQuietly(fd, path);
      }
      // Also where it was not created: a file server's answer may be lost.
      if (!discard(path)) {
        volume.lease.keepFile();
      }
      throw e;
    }
  }

  private int createInFolder(NativePath path, NativePath folder, int directory, long idHigh) {
    int fd = operations.create(path);
    if (fd == FileOperations.ABSENT) {
      boolean made = operations.makeFolder(paths.folder(folder, directory, idHigh));
      if (made && durability == FileStoreConfig.Durability.FULL) {
        operations.syncFolder(paths.inDirectory(directory));
      }
      fd = operations.create(path);
    }
    if (fd == FileOperations.ABSENT) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    return fd;
  }

  /** Opens a temporary file that was closed for a while; negative when it is not there. */
  int reopenTemp(NativePath path) {
    int fd = operations.openWrite(path);
    try {
      if (fd >= 0) {
        setDirect(fd, path);
      }
      return fd;
    } catch (Throwable e) {
      closeQuietly(fd, path);
      throw e;
    }
  }

  /** Prepares an open file for the engine. */
  void setDirect(int fd, NativePath path) {
    if (isDirect) {
      operations.setDirect(fd, path);
    }
  }

  /**
   * Makes a whole temporary file visible as its block, when no more than {@code commit_concurrency} others
   * are being committed, and its bytes are as safe as the configured durability asks.
   *
   * @param fd is closed, however it goes
   * @param path is overwritten
   */
  void commit(int fd, NativePath temp, NativePath path, long idHigh, long idLow) {
    Volume volume = volumes.of(idHigh, idLow);
    boolean published = false;
    commits[volume.number].acquireUninterruptibly();
    try {
      try {
        if (durability != FileStoreConfig.Durability.NONE) {
          operations.syncData(fd, temp);
        }
      } catch (Throwable e) {
        closeQuietly(fd, temp);
        throw e;
      }
      operations.close(fd, temp);
      space.beginCommit(idHigh, idLow);
      try {
        rename(temp, paths.block(path, idHigh, idLow), idHigh, idLow);
        published = true;
      } finally {
        space.endCommit(volume, idHigh, idLow, format.fileSize(), published);
      }
    } finally {
      commits[volume.number].release();
    }
  }

  private void rename(NativePath temp, NativePath block, long idHigh, long idLow) {
    operations.rename(temp, block);
    if (durability == FileStoreConfig.Durability.FULL) {
      try {
        operations.syncName(block);
      } catch (FileException e) {
        // The dump fails, and a block whose dump failed is no hit.
        discard(block);
        index.remove(idHigh, idLow);
        throw e;
      }
    }
    index.add(idHigh, idLow);
  }

  /**
   * Removes a temporary file, open or not, that will not be committed; gives its room back. Does not throw.
   *
   * @param isDown whether its directory is down: then the file is left to the next start
   */
  void abandon(int fd, NativePath temp, long idHigh, long idLow, boolean isDown) {
    Volume volume = volumes.of(idHigh, idLow);
    if (fd != FileOperations.ABSENT) {
      closeQuietly(fd, temp);
    }
    if (isDown || !discard(temp)) {
      volume.lease.keepFile();
    }
    space.release(volume, format.fileSize());
  }

  /** Removes a file; false when that is not possible. */
  private boolean discard(NativePath temp) {
    try {
      operations.remove(temp);
      return true;
    } catch (FileException e) {
      LOG.warn("{} cannot remove what is left of a failed dump: {}", paths.store(), e.getMessage());
      return false;
    }
  }

  /** Closes a file of which nothing more is wanted. */
  void closeQuietly(int fd, NativePath path) {
    try {
      operations.close(fd, path);
    } catch (FileException e) {
      LOG.debug("{}: {}", paths.store(), e.getMessage());
    }
  }
}
