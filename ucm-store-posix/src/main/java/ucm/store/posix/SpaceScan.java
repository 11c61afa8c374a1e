package ucm.store.posix;

import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import ucm.store.common.BlockPaths;
import ucm.store.posix.FolderTree.Folder;

/**
 * Finds out what the folders hold, and puts the account right: at start everything, later the folders
 * that were changed since, by this store or another. Temporary files count as well, except those of
 * this store, for which room is reserved. One scan at a time.
 */
final class SpaceScan {

  private static final int ATTEMPTS = 3;
  // A folder changed so short before a scan may change again without another time of change.
  private static final long SETTLE_MILLIS = TimeUnit.SECONDS.toMillis(2);
  private static final int NAME_DIGITS = 32;

  private final FolderTree tree;
  private final UsedSpace used;
  private final FolderWalk walk;
  private final WriterClaim[] claims;
  // Time of change of the folders that were scanned when they had settled, by slot.
  private final Map<Integer, Long> settled = new ConcurrentHashMap<>();

  SpaceScan(FolderTree tree, UsedSpace used, FolderWalk walk, WriterClaim[] claims) {
    this.tree = tree;
    this.used = used;
    this.walk = walk;
    this.claims = claims;
  }

  /**
   * Scans what has changed.
   *
   * @throws java.io.UncheckedIOException when a folder cannot be read
   */
  void run() {
    List<Folder> folders = tree.folders();
    walk.forEach(folders, this::scan);
    if (walk.isStopped()) {
      return;
    }
    BitSet there = new BitSet(tree.slots());
    folders.forEach(folder -> there.set(folder.slot()));
    Map<Integer, Long> gone = new HashMap<>(settled);
    gone.keySet().removeIf(there::get);
    for (int slot : gone.keySet()) {
      settled.remove(slot);
      used.scanned(slot, 0, used.changes(slot));
    }
    used.scanned();
  }

  private void scan(Folder folder) {
    long changed = FolderTree.changedMillis(folder);
    Long before = settled.get(folder.slot());
    if (before != null && before == changed) {
      return;
    }
    settled.remove(folder.slot());
    boolean counted = false;
    for (int attempt = 0; attempt < ATTEMPTS && !counted; attempt++) {
      int changes = used.changes(folder.slot());
      long[] sum = new long[1];
      FolderTree.visit(
          folder,
          (name, bytes, lastUse) -> sum[0] += isOwnTemp(folder.backend(), name) ? 0 : bytes);
      counted = used.scanned(folder.slot(), sum[0], changes);
    }
    if (counted && System.currentTimeMillis() - changed > SETTLE_MILLIS) {
      settled.put(folder.slot(), changed);
    }
  }

  /** Whether this store writes the file: {@code <id>.<token>-<number>.tmp}. */
  private boolean isOwnTemp(int backend, String name) {
    int end = name.lastIndexOf('-');
    return name.endsWith(BlockPaths.TEMP_SUFFIX)
        && end > NAME_DIGITS
        && claims[backend].owns(name.substring(NAME_DIGITS + 1, end));
  }
}
