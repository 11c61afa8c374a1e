package ucm.store.posix;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.FileTime;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.store.common.NativePath;

/**
 * Looks after the space of a store with a capacity, on a thread of its own: at start, then once in
 * {@code posix_gc_check_interval_sec}, and soon when a writer says that space runs short. In each
 * round it tells the files when their blocks were used and puts the account right; the one process
 * that holds the lease also removes what dead writers left, and cold blocks.
 */
final class SpaceKeeper implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SpaceKeeper.class);
  // Pressure that a round could not relieve must not keep the disk busy with rounds.
  private static final long SHORTEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final BlockFiles files;
  private final SpaceLimit space;
  private final boolean collects;
  private final long intervalNanos;
  private final long closeNanos;
  private final LongSupplier wallNanos;
  private final LastUses uses;
  private final FolderWalk walk;
  private final SpaceScan scan;
  private final Collector collector;
  private final DeadWriters deadWriters;
  private final CollectorLease lease;
  private final RememberedSpace remembered;
  private final ReentrantLock round = new ReentrantLock();
  private final Thread thread;

  private volatile boolean holdsLease;

  // Guarded by this; isPressed is read without it.
  private volatile boolean isPressed;
  private boolean closed;

  SpaceKeeper(
      PosixConfig config,
      BlockFiles files,
      SpaceLimit space,
      LongSupplier wallNanos,
      LastUses uses,
      FolderWalk walk,
      SpaceScan scan,
      Collector collector,
      DeadWriters deadWriters) {
    this.files = files;
    this.space = space;
    this.wallNanos = wallNanos;
    this.uses = uses;
    this.walk = walk;
    this.scan = scan;
    this.collector = collector;
    this.deadWriters = deadWriters;
    collects = config.gc().enable();
    intervalNanos = TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec());
    closeNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    lease = new CollectorLease(files.seam, files.paths);
    remembered = new RememberedSpace(files.seam, files.paths);
    thread = Thread.ofPlatform().daemon().name("ucm-posix-gc-0").unstarted(this::keep);
  }

  /** Takes up what was used at the end of the last process, and starts. */
  void start() {
    space.used.remember(remembered.read());
    space.whenPressed(this::wake);
    thread.start();
  }

  private void wake() {
    if (!isPressed) {
      synchronized (this) {
        isPressed = true;
        notifyAll();
      }
    }
  }

  private void keep() {
    try {
      do {
        makeRound();
      } while (pause());
    } catch (InterruptedException e) {
      // Nobody interrupts this thread but to end it.
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for the next round; false when there will be none. */
  private synchronized boolean pause() throws InterruptedException {
    long start = System.nanoTime();
    while (!closed) {
      long whole = isPressed ? Math.min(SHORTEST_PAUSE_NANOS, intervalNanos) : intervalNanos;
      long left = whole - (System.nanoTime() - start);
      if (left <= 0) {
        return true;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return false;
  }

  /** Makes a round now; one at a time. */
  void makeRound() {
    round.lock();
    try {
      isPressed = false;
      uses.drain(this::touch);
      scan.run();
      if (walk.isStopped()) {
        return;
      }
      holdsLease = lease.tryHold();
      if (holdsLease) {
        deadWriters.run();
        if (collects) {
          collector.run();
        }
        remembered.write(space.used.used());
      }
    } catch (RuntimeException e) {
      LOG.warn("Posix cannot look after the space of storage_backends: {}", e.toString());
    } finally {
      round.unlock();
    }
  }

  /** Gives a block's file the time of its last use; false to be asked again. */
  private boolean touch(long idHigh, long idLow, long atNanos) {
    Path file = Path.of(files.paths.block(new NativePath(), idHigh, idLow).toString());
    try {
      Files.getFileAttributeView(file, BasicFileAttributeView.class, LinkOption.NOFOLLOW_LINKS)
          .setTimes(null, FileTime.from(atNanos, TimeUnit.NANOSECONDS), null);
      return true;
    } catch (NoSuchFileException e) {
      // Still being dumped, or removed.
      return wallNanos.getAsLong() - atNanos > closeNanos;
    } catch (IOException e) {
      LOG.debug("Posix cannot note the use of a block: {}", e.toString());
      return true;
    }
  }

  /** Whether this process is the one that collects. */
  boolean holdsLease() {
    return holdsLease;
  }

  /** Ends the thread, for as long as that takes, then gives the lease back. */
  @Override
  public void close() {
    walk.stop();
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    }
    uses.drain(this::touch);
    if (holdsLease) {
      remembered.write(space.used.used());
    }
    lease.close();
  }
}
