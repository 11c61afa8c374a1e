package ucm.store.file.space;

import java.io.File;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.platform.fault.RecentFaults;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.volume.FreeSpace;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * Lets a block be written only when it fits: below {@code capacity_gb} over all directories, and
 * above {@code min_free_gb} on the file system of its own. Room is reserved before the first
 * byte is written, so that writers side by side cannot pass the limit together. Thread-safe.
 *
 * <p>Processes that share the directories count what the others wrote when they scan. Each writes at most
 * a 32nd of the capacity between two scans, and waits for the second one then. So n of them pass the
 * capacity by n 32nds of it at most, and what each is writing: the one that scanned last saw no more than
 * the capacity, and no other has scanned, and so written more than its 32nd, since. The floor holds for
 * all, at once.
 *
 * <p>A file counts with its size in whole units of 4 KiB. That is known before it is written, which
 * the allocated blocks that {@code stat} tells are not: delayed allocation is not in them yet, and some
 * file systems allocate ahead.
 */
public final class SpaceLimit {

  /** Bytes of what the keys call GB. */
  public static final long GB = 1L << 30;

  private static final Logger LOG = LoggerFactory.getLogger(SpaceLimit.class);
  // A store that has written this part of the capacity counts what others wrote meanwhile.
  private static final int PARTS_BETWEEN_SCANS = 32;

  public final UsedSpace used;

  private final BlockPaths paths;
  private volatile FileStoreConfig config;
  private final Volumes volumes;
  private final StoreMetrics.Counter refused;
  private final boolean isLimited;
  private volatile long capacityBytes;
  private volatile long wakeBytes;
  private volatile Runnable onPressure = () -> {};
  private volatile boolean isShared;
  private final RecentFaults told;
  private final long patienceNanos;
  private final AtomicLong awaitedBytes = new AtomicLong();
  private final Object roundLock = new Object();
  // Guarded by roundLock.
  private long rounds;
  private boolean makesRoom;

  /** Nothing is reserved yet. */
  public SpaceLimit(
      FileStoreConfig config, BlockPaths paths, Volumes volumes, StoreMetrics.Counter refused) {
    this.config = config;
    this.paths = paths;
    this.volumes = volumes;
    this.refused = refused;
    isLimited = config.capacityGb() > 0;
    // A worker that waits moves nothing else; half of its task's time is left for the move.
    patienceNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs()) / 2;
    told = new RecentFaults(volumes.clock);
    used = new UsedSpace(isLimited ? paths.slots() : 0);
    reload(config);
  }

  /** Takes other limits; whether there is a capacity stays. */
  public void reload(FileStoreConfig changed) {
    config = changed;
    if (changed.capacityGb() > 0 == isLimited) {
      capacityBytes = (long) (changed.capacityGb() * GB);
    }
    wakeBytes =
        changed.gc().enable()
            ? (long) (changed.gc().triggerThresholdRatio() * capacityBytes)
            : Long.MAX_VALUE;
    for (Volume volume : volumes.all()) {
      // Some file systems in user space do not tell how large they are.
      boolean isKept = changed.minFreeGb() > 0 && new File(volume.directory).getTotalSpace() > 0;
      volume.free.keep(isKept ? (long) (changed.minFreeGb() * GB) : FreeSpace.OFF);
    }
  }

  /** Most bytes that all files may take; 0 is without limit. */
  public long capacityBytes() {
    return capacityBytes;
  }

  /** Whether there is a capacity, and so an account of what is used. */
  public boolean isLimited() {
    return isLimited;
  }

  /** Sets what is called when space runs short. */
  public void whenPressed(Runnable action) {
    onPressure = action;
  }

  /** Says whether other processes write to the same directories. */
  public void shared(boolean isSharedNow) {
    isShared = isSharedNow;
  }

  /** Whether other processes write to the same directories. */
  public boolean isShared() {
    return isShared;
  }

  /** Bytes that the blocks of a directory take; what is in quarantine is left out. */
  public long ofBlocks(int directory) {
    int first = paths.firstSlot(directory);
    return used.inFolders(first, paths.firstSlot(directory + 1) - 1);
  }

  private boolean tryReserve(long bytes) {
    return !mustScan(bytes) && used.reserve(bytes, capacityBytes);
  }

  /** Whether others have to be counted before so much is written. */
  private boolean mustScan(long bytes) {
    long unseen = used.addedSinceScan();
    return isShared && unseen > 0 && unseen + bytes > capacityBytes / PARTS_BETWEEN_SCANS;
  }

  /** Whether files of so many bytes would be written now, into whichever directories. */
  public boolean hasRoom(long bytes) {
    // What others have written since the last scan may be anything.
    return (!isLimited || (!isShared && missingBytes() + bytes <= 0))
        && volumes.all().stream().allMatch(volume -> volume.isSound() && volume.free.has(bytes));
  }

  /** Whether a writer waits for room. */
  public boolean isAwaited() {
    return awaitedBytes.get() > 0;
  }

  /** Bytes that must go before all writers that wait have room; negative when they have. */
  public long missingBytes() {
    return used.used() + awaitedBytes.get() - capacityBytes;
  }

  /**
   * A round of the collector has ended, or the collector begins its work.
   *
   * @param mayMakeRoom whether it is worth to wait for the next one
   */
  public void roundEnded(boolean mayMakeRoom) {
    synchronized (roundLock) {
      rounds++;
      makesRoom = mayMakeRoom;
      roundLock.notifyAll();
    }
  }

  /** Reserves room, and waits for the collector as long as it makes some: that is no fault of the directory. */
  private boolean reserveSoon(Volume volume, long bytes) {
    if (tryReserve(bytes)) {
      return true;
    }
    volumes.pause();
    try {
      return awaitRoom(bytes);
    } finally {
      volume.enter();
    }
  }

  private boolean awaitRoom(long bytes) {
    long deadline = System.nanoTime() + patienceNanos;
    awaitedBytes.addAndGet(bytes);
    try {
      synchronized (roundLock) {
        boolean fits = tryReserve(bytes);
        while (!fits && (makesRoom || mustScan(bytes))) {
          onPressure.run();
          long left = deadline - System.nanoTime();
          if (left <= 0) {
            return false;
          }
          long seen = rounds;
          TimeUnit.NANOSECONDS.timedWait(roundLock, left);
          fits = rounds != seen && tryReserve(bytes);
        }
        return fits;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      awaitedBytes.addAndGet(-bytes);
    }
  }

  /**
   * Reserves room for a block's file. Waits for the collector when the capacity is used up.
   *
   * @param volume where it is to be written
   * @throws SpaceRefusedException when there is none
   */
  public void reserve(Volume volume, long idHigh, long idLow, long fileSize) {
    long bytes = Folder.inUnits(fileSize);
    if (isLimited) {
      boolean fits = reserveSoon(volume, bytes);
      if (!fits
          || used.used() > wakeBytes
          || used.addedSinceScan() > capacityBytes / PARTS_BETWEEN_SCANS) {
        onPressure.run();
      }
      if (!fits) {
        throw refuse(
            idHigh,
            idLow,
            used.used() + " bytes of storage_backends are used, and its " + bytes,
            ("would pass the %1$s of %2$scapacity_gb: raise it, or let more be collected with"
                    + " %2$sgc_enable, %2$sgc_trigger_threshold_ratio and %2$sgc_recycle_percent")
                .formatted(capacityBytes, config.kind().key("")));
      }
    }
    if (!volume.free.reserve(bytes)) {
      if (isLimited) {
        used.release(bytes);
        onPressure.run();
      }
      throw refuse(
          idHigh,
          idLow,
          "%s bytes are free in %s, and its %s"
              .formatted(volume.free.known(), volume.directory, bytes),
          "would leave less than %s, %s bytes: make room there, or lower it"
              .formatted(config.kind().key("min_free_gb"), (long) (config.minFreeGb() * GB)));
    }
  }

  private SpaceRefusedException refuse(long idHigh, long idLow, String found, String why) {
    refused.increment();
    StoreKind kind = config.kind();
    SpaceRefusedException refusal =
        new SpaceRefusedException(
            "%s does not write block %s: %s %s"
                .formatted(kind.name(), BlockIds.hex(idHigh, idLow), found, why));
    if (told.isNews(why)) {
      LOG.warn(
          "{}; further ones are counted in {}refused_blocks", refusal.getMessage(), kind.key(""));
    }
    return refusal;
  }

  /** The file for which room was reserved is about to get its name. */
  public void beginCommit(long idHigh, long idLow) {
    if (isLimited) {
      used.beginCommit(paths.slot(idHigh, idLow));
    }
  }

  /**
   * Ends what {@link #beginCommit} began.
   *
   * @param isThere whether the file has its name; else its room stays reserved
   */
  public void endCommit(Volume volume, long idHigh, long idLow, long fileSize, boolean isThere) {
    long bytes = Folder.inUnits(fileSize);
    if (isLimited) {
      used.endCommit(paths.slot(idHigh, idLow), bytes, isThere);
    }
    if (isThere) {
      volume.free.committed(bytes);
    }
  }

  /** The file for which room was reserved will not be there. */
  public void release(Volume volume, long fileSize) {
    long bytes = Folder.inUnits(fileSize);
    if (isLimited) {
      used.release(bytes);
    }
    volume.free.release(bytes);
  }
}
