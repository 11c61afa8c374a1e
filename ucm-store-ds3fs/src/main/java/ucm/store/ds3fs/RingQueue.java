package ucm.store.ds3fs;

import java.util.ArrayDeque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.platform.io.IoQueue;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;

/**
 * The engine of one worker: on each mount a ring for reading and one for writing, made with the first
 * request. Hot path: allocates nothing.
 */
final class RingQueue implements IoQueue {

  private final List<Mount> mounts;
  private final RegisteredFiles files;
  private final Ds3fsConfig config;

  // Of each mount the one that reads and the one that writes.
  private final @Nullable RingMover[] movers;
  private final ArrayDeque<RingMover.Request> started = new ArrayDeque<>();

  RingQueue(List<Mount> mounts, RegisteredFiles files, Ds3fsConfig config) {
    this.mounts = mounts;
    this.files = files;
    this.config = config;
    movers = new RingMover[2 * mounts.size()];
  }

  @Override
  public int depth() {
    return config.rings().vectors();
  }

  /** The slots of a block are filled side by side; more bytes than a slot has would take turns. */
  @Override
  public int writeBytes() {
    return 512 << 10;
  }

  @Override
  public void read(int fd, NativePath path, IoVector into, long offset) {
    start(true, fd, path, into, offset);
  }

  @Override
  public void write(int fd, NativePath path, IoVector from, long offset) {
    start(false, fd, path, from, offset);
  }

  private void start(boolean isRead, int fd, NativePath path, IoVector memory, long offset) {
    int mount = files.register(fd, path);
    int at = 2 * mount + (isRead ? 0 : 1);
    RingMover mover = movers[at];
    if (mover == null) {
      mover = mounts.get(mount).newMover(isRead);
      movers[at] = mover;
    }
    started.add(mover.begin(fd, path, memory, offset, System.nanoTime() + config.timeoutNanos()));
  }

  @Override
  public long await() {
    RingMover.Request request = started.getFirst();
    long moved = request.mover.await(request);
    started.removeFirst();
    request.mover.release(request);
    return moved;
  }

  /**
   * Ends what is under way, and waits for it, but no longer than its deadline where 3FS does not touch
   * memory of the caller.
   */
  @Override
  public void drain() {
    while (!started.isEmpty()) {
      RingMover.Request request = started.removeFirst();
      request.mover.drop(request);
    }
  }

  @Override
  public void close() {
    for (int i = 0; i < movers.length; i++) {
      RingMover mover = movers[i];
      if (mover != null) {
        movers[i] = null;
        mover.close();
      }
    }
  }
}
