package ucm.store.file.tier;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.platform.table.ConcurrentBlockSet;

/**
 * Keeps what was loaded from the lower tier in the upper one as well. A shard is copied into staging memory
 * while the caller's memory may still be read, and written from there, so that no load waits for it. Loads go
 * first: while there are any, a twentieth of the processors' time goes into writing, and the rest is written
 * afterwards. What finds no staging memory is not kept; its next use may keep it. Thread-safe.
 */
final class Promotions {

  /** How many blocks are remembered. */
  static final int REMEMBERED_BLOCKS = 1 << 17;

  private static final int MOST_WRITING = 2;
  // Between the tasks of one request there is less.
  private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  // How long is rested after a write, beside loads, for as long as the write took.
  private static final double REST =
      Math.max(0, 20.0 / Runtime.getRuntime().availableProcessors() - 1);

  private final Store upper;
  private final Staging staging;
  private final TierMetrics metrics;
  // Blocks that were loaded once, and those that were loaded again; null when all are admitted.
  private final @Nullable ConcurrentBlockSet seen;
  private final @Nullable ConcurrentBlockSet again;
  private final ConcurrentBlockSet below;
  private final AtomicInteger removals = new AtomicInteger();
  // Guarded by this, as is what follows.
  private final ArrayDeque<Piece> waiting = new ArrayDeque<>();
  private int writing;
  private int loads;
  private long lastLoad = System.nanoTime();
  private long restsUntil = lastLoad;
  private boolean closed;

  /** Shards of a block in staging memory. */
  private record Piece(Transfer transfer, List<Integer> slots) {}

  /**
   * Has kept nothing yet.
   *
   * @param below takes the blocks that are offered to the upper tier
   */
  Promotions(
      Store upper,
      Staging staging,
      boolean admitsAll,
      ConcurrentBlockSet below,
      TierMetrics metrics) {
    this.upper = upper;
    this.below = below;
    this.staging = staging;
    this.metrics = metrics;
    seen = admitsAll ? null : new ConcurrentBlockSet(REMEMBERED_BLOCKS);
    again = admitsAll ? null : new ConcurrentBlockSet(REMEMBERED_BLOCKS);
  }

  /** What loads that began before bring is not kept any more; waits for what is being written. */
  synchronized void dropAll(long nanos) throws InterruptedException {
    removals.incrementAndGet();
    waiting.forEach(this::give);
    waiting.clear();
    long end = System.nanoTime() + nanos;
    for (long left = nanos; writing > 0 && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
  }

  /**
   * Prepares to keep shards of a load from the lower tier.
   *
   * @param others blocks of which the same load had other shards from the upper tier, which are not here
   */
  Promotion begin(Transfer transfer, Set<BlockIds> others) {
    return new Promotion(transfer, admitted(transfer), others);
  }

  /** The shards of blocks that are to be kept; null for all. */
  private @Nullable BitSet admitted(Transfer transfer) {
    if (seen == null || again == null) {
      return null;
    }
    BlockIds ids = transfer.ids();
    BitSet admitted = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      // A block that is loaded layer by layer is used once, with its first shard.
      if (transfer.shardIndex(i) == 0) {
        boolean isKnown = seen.contains(ids.high(i), ids.low(i));
        boolean _ = (isKnown ? again : seen).add(ids.high(i), ids.low(i));
      }
    }
    for (int i = 0; i < ids.size(); i++) {
      admitted.set(i, again.contains(ids.high(i), ids.low(i)));
    }
    return admitted;
  }

  private void give(Piece piece) {
    piece.slots.forEach(slot -> staging.give(slot));
  }

  /** A load of both tiers begins, which {@link #loadEnded} must follow. */
  synchronized void loadBegan() {
    loads++;
  }

  /** It has ended. */
  synchronized void loadEnded() {
    loads--;
    lastLoad = System.nanoTime();
    notifyAll();
  }

  /** The work of its thread: writes what waits, until it is closed. */
  void run() {
    for (Piece piece = next(); piece != null; piece = next()) {
      Piece begun = piece;
      long from = System.nanoTime();
      try {
        Task dump = upper.dump(begun.transfer);
        dump.whenTerminal(() -> written(begun, dump.result().okCount(), from));
      } catch (RuntimeException _) {
        // It has enough to do, or closes.
        written(begun, 0, from);
      }
    }
  }

  /** Has its thread end, when it has begun with no more. */
  synchronized void close() {
    closed = true;
    notifyAll();
  }

  private synchronized @Nullable Piece next() {
    try {
      while (!closed) {
        long pause = pause(System.nanoTime());
        if (pause <= 0) {
          writing++;
          return waiting.remove();
        }
        TimeUnit.NANOSECONDS.timedWait(this, pause);
      }
    } catch (InterruptedException e) {
      // It is to end.
      Thread.currentThread().interrupt();
    }
    return null;
  }

  /** How long to leave the next piece, unless something begins or ends meanwhile. */
  private long pause(long now) {
    if (waiting.isEmpty() || writing == MOST_WRITING) {
      return Long.MAX_VALUE;
    }
    long untilQuiet = loads > 0 ? Long.MAX_VALUE : lastLoad + QUIET_NANOS - now;
    return writing > 0 ? untilQuiet : Math.min(untilQuiet, restsUntil - now);
  }

  private void written(Piece piece, int shards, long from) {
    metrics.promotedShards().add(shards);
    metrics.unpromotedShards().add(piece.slots.size() - shards);
    give(piece);
    synchronized (this) {
      writing--;
      long now = System.nanoTime();
      restsUntil = now + (long) ((now - from) * REST);
      notifyAll();
    }
  }

  /** The shards of one load. */
  final class Promotion {

    private final Transfer transfer;
    private final @Nullable BitSet admitted;
    private final int[] slots;
    private final int removalsBefore = removals.get();

    // Those that are not to be kept.
    private final Set<BlockIds> incomplete;

    private Promotion(Transfer transfer, @Nullable BitSet admitted, Set<BlockIds> incomplete) {
      this.incomplete = new HashSet<>(incomplete);
      this.transfer = transfer;
      this.admitted = admitted;
      slots = new int[transfer.shardCount()];
      Arrays.fill(slots, Staging.NONE);
    }

    /** Copies a shard that has arrived; several threads may do so for different ones. */
    void take(int shard) {
      if (admitted != null && !admitted.get(shard)) {
        return;
      }
      int slot = staging.tryTake();
      if (slot == Staging.NONE) {
        metrics.unpromotedShards().increment();
        return;
      }
      staging.copy(transfer, shard, slot);
      slots[shard] = slot;
    }

    /** Has the shards of those blocks written of which all have arrived; called once, after all. */
    void offer() {
      findIncomplete();
      BlockIds ids = transfer.ids();
      synchronized (Promotions.this) {
        boolean isDropped = removals.get() != removalsBefore;
        int from = 0;
        while (from < slots.length) {
          BlockIds id = ids.slice(from, from + 1);
          int to = from + 1;
          while (to < slots.length && ids.slice(to, to + 1).equals(id)) {
            to++;
          }
          if (isDropped || incomplete.contains(id)) {
            staging.give(Arrays.copyOfRange(slots, from, to));
          } else {
            waiting.add(piece(from, to));
            boolean _ = below.add(id.high(0), id.low(0));
          }
          from = to;
        }
        Promotions.this.notifyAll();
      }
    }

    private Piece piece(int from, int to) {
      Transfer.Builder builder = Transfer.packed(transfer.layout()).expect(to - from);
      List<Integer> taken = new ArrayList<>();
      for (int i = from; i < to; i++) {
        staging.place(builder.shard(transfer.ids(), i, transfer.shardIndex(i)), slots[i]);
        taken.add(slots[i]);
      }
      return new Piece(builder.build(), taken);
    }

    private void findIncomplete() {
      for (int i = 0; i < slots.length; i++) {
        if (slots[i] == Staging.NONE) {
          incomplete.add(transfer.ids().slice(i, i + 1));
        }
      }
    }
  }
}
