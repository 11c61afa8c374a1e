package ucm.store.file.block;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.Libc;
import ucm.platform.libc.NativePath;

/**
 * Open files of blocks that are loaded layer by layer, so that not every layer opens the file and
 * checks its footer again. A file is closed when as many shards were read as the block has, when nothing
 * was read from it for a second, when its block is dropped, and when a newer one needs its slot; with
 * users inside, when the last of them leaves.
 *
 * <p>Bounded. Thread-safe; nothing is closed under the lock.
 */
public final class OpenBlocks {

  /** Most files kept open, however many the process may have. */
  public static final int MAX_KEPT = 256;

  /** How long a file stays open of which nothing more is read. */
  public static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

  // Of the files that the process may have open, this part at the most is kept open to be read
  // further, and as many to be written further.
  private static final int PARTS_OF_DESCRIPTORS = 8;

  /** The open file of a block, found to be that of a whole block. Its users read side by side. */
  static final class OpenBlock {

    final BlockIds id;
    final int fd;

    /** What {@link FileOperations#version} returned when the file was opened. */
    final long version;

    /** The checksums of its shards, or null when it has no footer. */
    final int @Nullable [] crcs;

    // Guarded by the lock of all.
    private int users = 1;
    private int shardsLeft;
    private long lastNanos;
    private boolean isKept;

    OpenBlock(BlockIds id, int fd, long version, int @Nullable [] crcs, int shards) {
      this.id = id;
      this.fd = fd;
      this.version = version;
      this.crcs = crcs;
      this.shardsLeft = shards;
    }
  }

  private final BlockFiles files;
  final int most = Math.min(MAX_KEPT, Libc.openFileLimit() / PARTS_OF_DESCRIPTORS);

  // Guarded by this; the one found longest ago comes first. Size is read without it.
  private final Map<BlockIds, OpenBlock> kept = new LinkedHashMap<>(16, 0.75f, true);
  private boolean closed;
  private volatile int size;

  /** Keeps nothing yet. */
  OpenBlocks(BlockFiles files) {
    this.files = files;
  }

  /** How many files are kept open. */
  public int size() {
    return size;
  }

  /** Finds the file of a block for one more user, which ends with {@link #release}; or null. */
  @Nullable OpenBlock find(long idHigh, long idLow) {
    if (size == 0) {
      return null;
    }
    synchronized (this) {
      OpenBlock block = kept.get(BlockIds.of(idHigh, idLow));
      if (block != null) {
        block.users++;
      }
      return block;
    }
  }

  /**
   * Keeps a file that its one user has just opened, unless another of its block is kept already, or
   * all slots are in use; then it is closed when that user leaves.
   */
  void keep(OpenBlock block) {
    OpenBlock evicted = null;
    synchronized (this) {
      if (closed || kept.containsKey(block.id)) {
        return;
      }
      if (size == most) {
        evicted = kept.values().stream().filter(old -> old.users == 0).findFirst().orElse(null);
        if (evicted == null) {
          return;
        }
        unlink(evicted);
      }
      kept.put(block.id, block);
      block.isKept = true;
      size = kept.size();
    }
    if (evicted != null) {
      close(evicted);
    }
  }

  /** One user leaves, which has read so many shards. */
  void release(OpenBlock block, int shards) {
    synchronized (this) {
      block.users--;
      block.shardsLeft -= shards;
      block.lastNanos = files.clock.getAsLong();
      if (block.isKept && (block.shardsLeft <= 0 || closed)) {
        unlink(block);
      }
      if (block.users > 0 || block.isKept) {
        return;
      }
    }
    close(block);
  }

  /** Forgets a block whose file is gone, is another one, or fails. */
  void drop(long idHigh, long idLow) {
    if (size == 0) {
      return;
    }
    OpenBlock block;
    synchronized (this) {
      block = kept.get(BlockIds.of(idHigh, idLow));
      if (block == null) {
        return;
      }
      unlink(block);
      if (block.users > 0) {
        return;
      }
    }
    close(block);
  }

  /** Has files closed that are idle; those of a directory that is down stay, as closing might hang. */
  public void closeIdle(long now) {
    List<OpenBlock> idle;
    synchronized (this) {
      idle =
          kept.values().stream()
              .filter(block -> closed || now - block.lastNanos >= IDLE_NANOS)
              .filter(block -> block.users == 0)
              .filter(block -> !files.volumes.of(block.id.high(0), block.id.low(0)).isDown())
              .toList();
      idle.forEach(this::unlink);
    }
    if (!idle.isEmpty()) {
      files.volumes.later(() -> idle.forEach(this::close));
    }
  }

  /** Has everything closed, and keeps nothing any more; but see {@link #closeIdle} for what stays. */
  public void closeAll() {
    synchronized (this) {
      closed = true;
    }
    closeIdle(0);
  }

  private void close(OpenBlock block) {
    files.closeQuietly(
        block.fd, files.paths.block(new NativePath(), block.id.high(0), block.id.low(0)));
  }

  private synchronized void unlink(OpenBlock block) {
    kept.remove(block.id);
    block.isKept = false;
    size = kept.size();
  }
}
