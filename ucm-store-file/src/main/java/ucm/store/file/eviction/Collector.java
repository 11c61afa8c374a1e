package ucm.store.file.eviction;

import static java.util.Comparator.comparing;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.ThreadEnd;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.BlockScan;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.eviction.Coldest.Block;
import ucm.store.file.format.Folder;
import ucm.store.file.lease.CollectorLease;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.space.LastUsedSpace;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * Manages the space of a store with a capacity, on a thread of its own: at start, then once in
 * {@code gc_check_interval_sec}, and soon when a writer says that space runs short. In each
 * round it writes to the files when their blocks were used and has a {@link BlockScan} correct the account; the one process
 * that holds the lease also removes what dead writers left, and cold blocks. A directory that is down
 * is left out, and one that hangs meanwhile does not keep the others from their turn; see {@link Volumes}.
 *
 * <p>Blocks go when more than the threshold is used, or a file system is at its floor: {@code
 * gc_recycle_percent} of what is used, or as much as leads below the threshold if that is more. They are the {@link
 * Coldest} of all directories. As a block counts as used after those that follow it in a prompt
 * ({@link BlockUses}), the leaves of a prompt go before its root.
 *
 * <p>A block that this store is loading is left alone, as is one used since the times were last written
 * of uses. When another process loads it, a local file system keeps the bytes until its file is
 * closed; on NFS the other client gets ESTALE, which is a miss, as is every shard for which the file
 * is opened only after that.
 */
public final class Collector implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Collector.class);
  // Pressure that a round could not relieve must not keep the disk busy with rounds.
  private static final long OTHERS_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long SHORTEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
  // For so long room that another process is to make is waited for in vain: its capacity may be
  // another.
  private static final long OTHERS_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);
  // So many are removed before it is asked which others may go.
  private static final int REMOVALS_AT_ONCE = 256;

  private final BlockFiles files;
  private final SpaceLimit space;
  private volatile FileStoreConfig.Gc config;
  private final BlockUses uses;
  private final StoreKind kind;
  private final int threads;
  private final Volumes volumes;
  private final BlockScan scan;
  private final LastUsedSpace last;
  private final DeadWriters deadWriters;
  private final List<Volume> lockOrder;
  private final Supplier<Set<BlockIds>> loading;
  private final @Nullable Function<BlockIds, BitSet> guard;
  private final StoreMetrics.Counter runs;
  private final StoreMetrics.Counter removedBlocks;
  private final StoreMetrics.Counter removedBytes;
  private final ReentrantLock round = new ReentrantLock();
  private final Thread thread;
  private final CountDownLatch firstRound = new CountDownLatch(1);

  // Guarded by the round: what was used in the one before, and when there was room, or some was
  // made, last.
  private long usedBefore;
  private long roomNanos;

  private volatile boolean holdsLease;
  private volatile boolean isRemoving;

  // Guarded by this; read without it.
  private volatile boolean isPressed;
  private volatile boolean closed;
  // Whether the last round made room, so that another one at once is worth it; as isPressed.
  private volatile boolean isUseful = true;

  /**
   * Makes no round yet.
   *
   * @param loading the blocks that are being loaded
   * @param guard says which cold blocks are not lost when they are removed, bit by bit, in a fresh set; may take
   *     them elsewhere first, and so take its time; null for all
   */
  public Collector(
      FileStoreConfig config,
      BlockFiles files,
      BlockUses uses,
      DeadWriters deadWriters,
      Supplier<Set<BlockIds>> loading,
      StoreMetrics metrics,
      @Nullable Function<BlockIds, BitSet> guard) {
    this.files = files;
    this.space = files.space;
    this.config = config.gc();
    this.uses = uses;
    this.volumes = files.volumes;
    this.deadWriters = deadWriters;
    this.loading = loading;
    this.guard = guard;
    roomNanos = volumes.clock.getAsLong();
    kind = config.kind();
    threads = Math.max(1, this.config.concurrency() / volumes.all().size());
    scan = new BlockScan(files, kind, threads, () -> closed);
    last = new LastUsedSpace(files.operations, files.paths, space.used);
    lockOrder = new ArrayList<>(volumes.all());
    lockOrder.sort(comparing(volume -> volume.directory));
    thread = kind.newThread("gc", 0).unstarted(this::keep);
    runs = metrics.counter("gc_runs", "Rounds in which blocks were to be removed");
    removedBlocks = metrics.counter("gc_removed_blocks", "Blocks removed to win back space");
    removedBytes = metrics.counter("gc_removed_bytes", "Bytes won back");
    metrics.gauge(
        "gc_running",
        "1 while this process removes blocks to win back space, else 0",
        () -> isRemoving ? 1 : 0);
    metrics.gauge("used_bytes", "Bytes that all files take", space.used::used);
    metrics.gauge("capacity_bytes", "Most bytes that all files may take", space::capacityBytes);
  }

  /** Restores what was used at the end of the last process, and starts. */
  public void start() {
    last.restore();
    space.whenPressed(this::wake);
    space.roundEnded(config.enable());
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
    long interval = TimeUnit.SECONDS.toNanos(config.checkIntervalSec());
    long start = System.nanoTime();
    while (!closed) {
      boolean isUrgent = isPressed && space.isAwaited() && (isUseful || space.isShared());
      // Others cannot wake the one that collects.
      boolean isSoon = isPressed || (holdsLease && space.isShared());
      long soon = isSoon ? Math.min(SHORTEST_PAUSE_NANOS, interval) : interval;
      long whole = isUrgent ? (holdsLease ? 0 : OTHERS_PAUSE_NANOS) : soon;
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
      if (closed) {
        return;
      }
      Set<Volume> held = tryHold();
      holdsLease = !held.isEmpty();
      space.shared(sweep(held));
      boolean hasRoom = sawRoom();
      isUseful = config.enable() && (holdsLease ? makeRoom(held) : hasRoom && space.isShared());
      remember(held);
    } catch (RuntimeException e) {
      LOG.warn(
          "{} cannot manage the space of storage_backends: {}", files.paths.store(), e.toString());
    } finally {
      round.unlock();
      space.roundEnded(isUseful);
    }
  }

  /**
   * Takes the lease of the directories that can be used, unless another process has that of one of them.
   *
   * @return where this process has it now; empty when another process has it
   */
  private Set<Volume> tryHold() {
    Set<Volume> held = new HashSet<>();
    for (Volume volume : lockOrder) {
      CollectorLease lease = volume.collecting;
      AtomicBoolean isTaken = new AtomicBoolean();
      if (!lease.isHeld()) {
        volumes.forEach(List.of(volume), _ -> isTaken.set(!lease.tryHold()));
      }
      if (isTaken.get()) {
        volumes.forEach(lockOrder, one -> one.collecting.release());
        return Set.of();
      }
      if (lease.isHeld()) {
        held.add(volume);
      }
    }
    return held;
  }

  /** Removes what dead writers left where this may; returns whether other stores write anywhere. */
  private boolean sweep(Set<Volume> held) {
    AtomicBoolean hasOthers = new AtomicBoolean();
    volumes.forEach(
        volumes.all(),
        volume -> {
          if (held.contains(volume)) {
            deadWriters.sweep(volume.lease, () -> goesOn(volume));
          }
          if (deadWriters.hasOthers(volume.lease)) {
            hasOthers.set(true);
          }
        });
    return hasOthers.get();
  }

  private boolean goesOn(Volume volume) {
    volume.step();
    return !volumes.isClosing();
  }

  /** Whether there is room, or another process that has the lease has made some of late. */
  private boolean sawRoom() {
    long now = volumes.clock.getAsLong();
    long used = space.used.used();
    if (used < usedBefore || used <= config.triggerThresholdRatio() * space.capacityBytes()) {
      roomNanos = now;
    }
    usedBefore = used;
    return now - roomNanos <= OTHERS_PATIENCE_NANOS;
  }

  private void remember(Collection<Volume> held) {
    // In the first directory only.
    volumes.forEach(
        held.stream().filter(volume -> volume.number == 0).toList(), _ -> last.remember());
  }

  /**
   * Removes blocks if it is time for that.
   *
   * @param held where this process may remove something
   * @return whether there was nothing to do, or something was removed
   */
  private boolean makeRoom(Set<Volume> held) {
    long used = space.used.used();
    double threshold = config.triggerThresholdRatio() * space.capacityBytes();
    List<Volume> pressed = volumes.all().stream().filter(v -> v.free.takePressed()).toList();
    long missing = space.isAwaited() ? space.missingBytes() : 0;
    if (used <= threshold && pressed.isEmpty() && missing <= 0) {
      return true;
    }
    Collection<Volume> some = held;
    double wanted;
    if (used > threshold || missing > 0) {
      wanted =
          Math.max(config.recyclePercent() * used, Math.max(used - threshold, (double) missing));
    } else {
      some = held.stream().filter(pressed::contains).toList();
      long there = some.stream().mapToLong(volume -> space.ofBlocks(volume.number)).sum();
      wanted = Math.max(config.recyclePercent() * there, 1);
    }
    runs.increment();
    isRemoving = true;
    long freed;
    try {
      freed = evict(some, (long) Math.ceil(wanted));
    } finally {
      isRemoving = false;
    }
    LOG.info(
        "{} removed blocks of {} bytes; {} of {} bytes are used",
        files.paths.store(),
        freed,
        space.used.used(),
        space.capacityBytes());
    return freed > 0;
  }

  /** Takes other limits, and makes a round soon to be within them. */
  public void reload(FileStoreConfig.Gc changed) {
    config = changed;
    wake();
  }

  /** Removes the coldest blocks of some directories; returns the bytes won back. */
  private long evict(Collection<Volume> some, long wanted) {
    Map<Volume, List<Block>> found = new ConcurrentHashMap<>();
    Set<Volume> seen = volumes.forEach(some, volume -> found.put(volume, coldest(volume, wanted)));
    // Blocks of a directory that stopped answering would stay, and others with them.
    Coldest cold = new Coldest(wanted, uses.wallNanos());
    seen.forEach(volume -> found.getOrDefault(volume, List.of()).forEach(cold::offer));
    List<Block> coldest = cold.coldestFirst();
    AtomicLong freed = new AtomicLong();
    for (int from = 0; from < coldest.size() && !closed; from += REMOVALS_AT_ONCE) {
      int to = Math.min(coldest.size(), from + REMOVALS_AT_ONCE);
      List<Block> next = removable(coldest.subList(from, to));
      volumes.forEach(seen, volume -> remove(volume, next, freed));
    }
    return freed.get();
  }

  private List<Block> coldest(Volume volume, long wanted) {
    Coldest cold = new Coldest(wanted, uses.wallNanos());
    List<Folder> folders = files.paths.folders(files.operations, volume.number);
    folders.removeIf(folder -> !files.paths.holdsBlocks(folder));
    Folder.forEach(
        kind,
        threads,
        folders,
        folder -> {
          if (!closed) {
            cold.show(files.operations, folder, volume::step);
          }
        });
    return cold.coldestFirst();
  }

  /** Those of some blocks that may be removed now, in their order. */
  private List<Block> removable(List<Block> coldest) {
    List<Block> some = guard == null ? coldest : guarded(guard, coldest);
    uses.raise();
    Set<BlockIds> loads = loading.get();
    return some.stream()
        .filter(block -> !loads.contains(BlockIds.of(block.idHigh(), block.idLow())))
        .toList();
  }

  private static List<Block> guarded(Function<BlockIds, BitSet> by, List<Block> coldest) {
    long[] words = new long[2 * coldest.size()];
    for (int i = 0; i < coldest.size(); i++) {
      words[2 * i] = coldest.get(i).idHigh();
      words[2 * i + 1] = coldest.get(i).idLow();
    }
    return by.apply(BlockIds.wrap(words)).stream().mapToObj(coldest::get).toList();
  }

  private void remove(Volume volume, List<Block> some, AtomicLong freed) {
    for (Block block : some) {
      if (block.folder().directory() == volume.number && !closed) {
        freed.addAndGet(remove(block));
        volume.step();
      }
    }
  }

  /** Removes a block, unless it must stay; returns the bytes won back. */
  private long remove(Block block) {
    long high = block.idHigh();
    long low = block.idLow();
    int slot = block.folder().slot();
    // A file in a folder that is not its own is no block of ours.
    if (files.paths.slot(high, low) != slot || uses.isNew(high, low)) {
      return 0;
    }
    NativePath path = new NativePath();
    try {
      if (!files.operations.remove(files.paths.block(path, high, low))) {
        return 0;
      }
      files.lost(path, high, low);
    } catch (FileException e) {
      LOG.warn(
          "{} cannot remove a block to win back space: {}", files.paths.store(), e.getMessage());
      return 0;
    }
    space.used.removed(slot, block.bytes());
    removedBlocks.increment();
    removedBytes.add(block.bytes());
    return block.bytes();
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
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    ThreadEnd.await(List.of(thread));
    uses.flush();
    if (holdsLease) {
      remember(volumes.all());
    }
    for (Volume volume : lockOrder) {
      volume.collecting.stop();
      // Where it is down as well: no other process would get the lock until this one ends.
      volume.execute("release", volume.collecting::release);
    }
  }
}
