package ucm.store.file.eviction;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.health.DirectoryExecutors;
import ucm.store.file.lease.CollectorLease;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.space.RememberedSpace;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.space.SpaceScan;

/**
 * Manages the space of a store with a capacity, on a thread of its own: at start, then once in
 * {@code gc_check_interval_sec}, and soon when a writer says that space runs short. In each
 * round it writes to the files when their blocks were used and corrects the account; the one process
 * that holds the lease also removes what dead writers left, and cold blocks. A directory that is down
 * is left out, and one that hangs meanwhile does not keep the others from their turn; see {@link
 * DirectoryExecutors}.
 */
public final class CapacityManager implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(CapacityManager.class);
  // Pressure that a round could not relieve must not keep the disk busy with rounds.
  private static final long OTHERS_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long SHORTEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final BlockFiles files;
  private final SpaceLimit space;
  private final boolean collects;
  private final long intervalNanos;
  private final BlockUses uses;
  private final FolderWalk walk;
  private final DirectoryExecutors executors;
  private final SpaceScan scan;
  private final Collector collector;
  private final DeadWriters deadWriters;
  private final CollectorLease lease;
  private final RememberedSpace remembered;
  private final ReentrantLock round = new ReentrantLock();
  private final Thread thread;
  private final CountDownLatch firstRound = new CountDownLatch(1);

  private volatile boolean holdsLease;

  // Guarded by this; isPressed is read without it.
  private volatile boolean isPressed;
  private boolean closed;
  // Whether the last round made room, so that another one at once is worth it; as isPressed.
  private volatile boolean isUseful = true;

  public CapacityManager(
      FileStoreConfig config,
      BlockFiles files,
      SpaceLimit space,
      BlockUses uses,
      FolderWalk walk,
      DirectoryExecutors executors,
      SpaceScan scan,
      Collector collector,
      DeadWriters deadWriters) {
    this.files = files;
    this.space = space;
    this.uses = uses;
    this.walk = walk;
    this.executors = executors;
    this.scan = scan;
    this.collector = collector;
    this.deadWriters = deadWriters;
    collects = config.gc().enable();
    intervalNanos = TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec());
    lease = new CollectorLease(files.operations, files.paths);
    remembered = new RememberedSpace(files.operations, files.paths);
    thread = config.kind().newThread("gc", 0).unstarted(this::keep);
  }

  /** Restores what was used at the end of the last process, and starts. */
  public void start() {
    space.used.remember(remembered.read());
    space.whenPressed(this::wake);
    space.roundEnded(collects);
    thread.start();
  }

  /** Makes a round soon. */
  public void wake() {
    if (!isPressed || space.isAwaited()) {
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
        firstRound.countDown();
      } while (pause());
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for the next round; false when there will be none. */
  private synchronized boolean pause() throws InterruptedException {
    long start = System.nanoTime();
    while (!closed) {
      boolean isUrgent = isPressed && space.isAwaited() && (isUseful || space.isShared());
      long urgent = holdsLease ? 0 : OTHERS_PAUSE_NANOS;
      // Others cannot wake the one that collects.
      boolean isSoon = isPressed || (holdsLease && space.isShared());
      long whole =
          isUrgent
              ? urgent
              : isSoon ? Math.min(SHORTEST_PAUSE_NANOS, intervalNanos) : intervalNanos;
      long left = whole - (System.nanoTime() - start);
      if (left <= 0) {
        return true;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return false;
  }

  /** Makes a round now; one at a time. */
  public void makeRound() {
    round.lock();
    try {
      isPressed = false;
      isUseful = false;
      uses.flush();
      scan.run();
      if (walk.isStopped()) {
        return;
      }
      BitSet held = lease.tryHold(executors);
      holdsLease = !held.isEmpty();
      executors.forEach(
          held, directory -> deadWriters.sweep(directory, () -> executors.step(directory)));
      space.shared(hasOthers());
      // Another process that has the lease makes room.
      isUseful = collects && (holdsLease ? collector.run(held) : space.isShared());
      remember(held);
    } catch (RuntimeException e) {
      LOG.warn(
          "{} cannot manage the space of storage_backends: {}", files.paths.store(), e.toString());
    } finally {
      round.unlock();
      space.roundEnded(isUseful);
    }
  }

  private boolean hasOthers() {
    AtomicBoolean found = new AtomicBoolean();
    executors.forEach(
        executors.all(),
        directory -> {
          if (deadWriters.hasOthers(directory)) {
            found.set(true);
          }
        });
    return found.get();
  }

  private void remember(BitSet held) {
    // In the first directory only.
    executors.forEach(held.get(0, 1), _ -> remembered.write(space.used.used()));
  }

  /** Waits until it has made a round on its own, as it does when it starts; for tests. */
  public void awaitFirstRound() throws InterruptedException {
    firstRound.await();
  }

  public boolean holdsLease() {
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
    lease.end();
    uses.flush();
    if (holdsLease) {
      remember(executors.all());
    }
    lease.release(executors);
  }
}
