package ucm.store.ds3fs;

import java.util.List;
import java.util.Objects;
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
  private final long timeoutNanos;

  private final @Nullable RingMover[] readers;
  private final @Nullable RingMover[] writers;

  // In the order in which they were started: a ring buffer.
  private final @Nullable RingRequest[] started;
  private int oldest;
  private int startedCount;

  /**
   * A queue without rings.
   *
   * @param depth how many requests may be under way
   * @param timeoutNanos how long 3FS may take to answer one
   */
  RingQueue(List<Mount> mounts, RegisteredFiles files, int depth, long timeoutNanos) {
    this.mounts = mounts;
    this.files = files;
    this.timeoutNanos = timeoutNanos;
    readers = new RingMover[mounts.size()];
    writers = new RingMover[mounts.size()];
    started = new RingRequest[depth];
  }

  @Override
  public int depth() {
    return started.length;
  }

  /** The slots of a block are filled side by side; more bytes than a slot has would take turns. */
  @Override
  public int writeBytes() {
    return 512 << 10;
  }

  @Override
  public void read(int fd, NativePath path, IoVector into, long offset) {
    start(mover(readers, files.register(fd, path), true), fd, path, into, offset);
  }

  @Override
  public void write(int fd, NativePath path, IoVector from, long offset) {
    start(mover(writers, files.register(fd, path), false), fd, path, from, offset);
  }

  private RingMover mover(@Nullable RingMover[] movers, int mount, boolean isRead) {
    RingMover mover = movers[mount];
    if (mover == null) {
      mover = mounts.get(mount).newMover(isRead);
      movers[mount] = mover;
    }
    return mover;
  }

  private void start(RingMover mover, int fd, NativePath path, IoVector memory, long offset) {
    int at = (oldest + startedCount) % started.length;
    started[at] = mover.begin(fd, path, memory, offset, System.nanoTime() + timeoutNanos);
    startedCount++;
  }

  @Override
  public long await() {
    RingRequest request = Objects.requireNonNull(started[oldest]);
    long moved = request.mover.await(request);
    forgetOldest();
    request.mover.release(request);
    return moved;
  }

  /**
   * Ends what is under way, and waits for it, but no longer than its deadline where 3FS does not touch
   * memory of the caller.
   */
  @Override
  public void drain() {
    while (startedCount > 0) {
      RingRequest request = Objects.requireNonNull(started[oldest]);
      forgetOldest();
      request.mover.drop(request);
    }
  }

  private void forgetOldest() {
    started[oldest] = null;
    oldest = (oldest + 1) % started.length;
    startedCount--;
  }

  @Override
  public void close() {
    close(readers);
    close(writers);
  }

  private static void close(@Nullable RingMover[] movers) {
    for (int i = 0; i < movers.length; i++) {
      RingMover mover = movers[i];
      if (mover != null) {
        movers[i] = null;
        mover.close();
      }
    }
  }
}
