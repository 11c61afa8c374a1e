package ucm.store.file.space;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * Finds out what the folders hold, and puts the account right: at start everything, later the folders
 * that were changed since, by this store or another. Temporary files count as well, except those of
 * this store, for which room is reserved. One scan at a time, and each directory by itself.
 *
 * <p>The bytes used at the end of the collector's last round stand in {@code .gc/used} of the first directory:
 * a start takes them for true until its own scan has ended. Only the holder of the lease writes them.
 */
public final class SpaceScan {

  private static final Logger LOG = LoggerFactory.getLogger(SpaceScan.class);
  private static final Pattern CONTENT = Pattern.compile("1 ([0-9]{1,18})\n");
  private static final String NAME = "used";
  private static final String NEXT = "used.next";
  private static final int NOTHING = -1;
  private static final int MOST_BYTES = 64;
  private static final int ATTEMPTS = 3;
  // A folder changed so short before a scan may change again without another time of change. One of
  // a time to come,
  // as when the clock was set back, gets another time too.
  private static final long SETTLE_MILLIS = TimeUnit.SECONDS.toMillis(2);
  private static final int NAME_DIGITS = 32;

  private final FileOperations files;
  private final BlockPaths paths;
  private final Volumes volumes;
  private final UsedSpace used;
  private final FolderWalk walk;
  // Time of change of the folders that were scanned when they had settled, by slot.
  private final Map<Integer, Long> settled = new ConcurrentHashMap<>();
  private long written = NOTHING;

  public SpaceScan(
      FileOperations files, BlockPaths paths, SpaceLimit space, FolderWalk walk, Volumes volumes) {
    this.files = files;
    this.paths = paths;
    this.volumes = volumes;
    this.used = space.used;
    this.walk = walk;
  }

  /** Scans what has changed in all directories that can be used. */
  public void run() {
    Set<Volume> seen = volumes.forEach(volumes.all(), this::scan);
    if (!walk.isStopped()) {
      used.scanned(seen.size() == volumes.all().size());
    }
  }

  private void scan(Volume volume) {
    List<Folder> folders = paths.folders(files, volume.number);
    walk.forEach(folders, folder -> scan(volume, folder));
    if (walk.isStopped()) {
      return;
    }
    Set<Integer> gone = new HashSet<>(settled.keySet());
    gone.removeIf(slot -> paths.directoryOf(slot) != volume.number);
    folders.forEach(folder -> gone.remove(folder.slot()));
    for (int slot : gone) {
      settled.remove(slot);
      used.scanned(slot, 0, used.changes(slot));
    }
  }

  private void scan(Volume volume, Folder folder) {
    volume.step();
    // Before the time of change is asked for: that call may hold this thread for long.
    long now = System.currentTimeMillis();
    long changed = folder.changedMillis(files);
    Long before = settled.get(folder.slot());
    if (before != null && before == changed) {
      return;
    }
    settled.remove(folder.slot());
    boolean counted = false;
    for (int attempt = 0; attempt < ATTEMPTS && !counted; attempt++) {
      int changes = used.changes(folder.slot());
      long[] sum = new long[1];
      folder.visit(
          files,
          (name, bytes, lastUse) -> {
            volume.step();
            sum[0] += isOwnTemp(volume, name) ? 0 : bytes;
          });
      counted = used.scanned(folder.slot(), sum[0], changes);
    }
    if (counted && Math.abs(now - changed) > SETTLE_MILLIS) {
      settled.put(folder.slot(), changed);
    }
  }

  /** Whether this store writes the file: {@code <id>.<token>-<number>.tmp}. */
  private static boolean isOwnTemp(Volume volume, String name) {
    int end = name.lastIndexOf('-');
    return name.endsWith(BlockPaths.TEMP_SUFFIX)
        && end > NAME_DIGITS
        && volume.lease.owns(name.substring(NAME_DIGITS + 1, end));
  }

  /** Takes up what was used at the end of the last process, if that can be read. */
  public void restore() {
    try {
      byte[] bytes = SmallFile.read(files, path(NAME), MOST_BYTES);
      Matcher content =
          CONTENT.matcher(bytes == null ? "" : new String(bytes, StandardCharsets.US_ASCII));
      if (content.matches()) {
        used.remember(Long.parseLong(content.group(1)));
      }
    } catch (FileException e) {
      LOG.warn("{} cannot read how much space was used: {}", paths.store(), e.getMessage());
    }
  }

  /** Writes how much is used now, unless that is there. */
  public void remember() {
    long now = used.used();
    if (now == written) {
      return;
    }
    try {
      NativePath next = path(NEXT);
      // Left by a collector that died here.
      files.remove(next);
      int fd = files.create(next);
      if (fd < 0) {
        return;
      }
      try {
        SmallFile.write(files, fd, next, "1 " + now + "\n", 0);
      } finally {
        files.close(fd, next);
      }
      files.rename(next, path(NAME));
      written = now;
    } catch (FileException e) {
      LOG.debug("{} cannot note how much space is used: {}", paths.store(), e.getMessage());
    }
  }

  private NativePath path(String name) {
    return paths.inDirectory(0, BlockPaths.GC, name);
  }
}
