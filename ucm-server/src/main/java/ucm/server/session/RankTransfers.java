package ucm.server.session;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.BlockLender.Fetch;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.StoreCalls;
import ucm.pipeline.connector.engine.FailedLoads;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.connector.statistics.WorkerMetrics;
import ucm.pipeline.hash.BlockHasher;
import ucm.server.staging.StagingSegment;

/**
 * Moves whole blocks between the slots of one rank and the pipeline; loads and saves run side by side.
 * Slots of a transfer are left alone by others until it has ended. Thread-safe.
 */
final class RankTransfers implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(RankTransfers.class);
  // Each waits for a transfer; more of a kind than these find the store busy.
  private static final int THREADS = 4;
  private static final int[] NO_BLOCKS = {};
  // Each task has a deadline in its store; this is for a store that does not keep it.
  private static final long CLOSE_SECONDS = 120;

  private final int rank;
  private final StagingSegment segment;
  private final BlockLayout layout;
  private final Store store;
  private final BlockHasher hasher;
  private final StoreCalls calls;
  private final WorkerMetrics metrics;
  private final ExecutorService loads;
  // Saves may wait for room for long, and loads not for them.
  private final ExecutorService saves;

  /**
   * Moves nothing yet.
   *
   * @param segment the rank's slots; closed with this
   * @param store an open pipeline of blocks of {@code layout}
   */
  RankTransfers(
      ConnectorSetup setup, int rank, BlockLayout layout, StagingSegment segment, Store store) {
    this.rank = rank;
    this.segment = segment;
    this.layout = layout;
    this.store = store;
    hasher = setup.hasher();
    calls = setup.calls(rank, store);
    metrics = setup.workerMetrics(rank);
    loads = threads("load");
    saves = threads("save");
  }

  private ExecutorService threads(String what) {
    String name = "ucm-serve-rank-" + rank + "-" + what + "-";
    return Executors.newFixedThreadPool(
        THREADS, Thread.ofPlatform().daemon().name(name, 0).factory());
  }

  StagingSegment segment() {
    return segment;
  }

  /**
   * Loads blocks into slots, or says where the rank reads those that the store lends.
   *
   * @param ids as rank 0 names them
   * @param lending of slots that have the numbers of others; null when none are read so
   * @param done gets how many of the first blocks are there
   */
  void load(
      String requestId, BlockIds ids, int[] slots, @Nullable LoadSlots lending, IntConsumer done) {
    int borrowed = 0;
    if (lending != null && lending.lends()) {
      borrowed = place(slots, 0, lending.borrow(hasher.ofRank(rank, ids)));
      borrowed(borrowed);
    }
    if (borrowed == slots.length) {
      done.accept(borrowed);
    } else {
      int first = borrowed;
      run(loads, requestId, () -> load(requestId, ids, slots, first, lending), first, done::accept);
    }
  }

  private int load(
      String requestId, BlockIds ids, int[] slots, int borrowed, @Nullable LoadSlots lending)
      throws InterruptedException {
    int first = borrowed;
    if (lending != null && lending.lends()) {
      BlockIds others = ids.slice(first, ids.size());
      first = place(slots, first, moved(requestId, () -> fetch(others, lending), new int[0]));
    }
    if (first == slots.length) {
      return first;
    }
    int[] others = Arrays.copyOfRange(slots, first, slots.length);
    return first
        + load(
            new RequestPlan(
                requestId,
                ids.slice(first, ids.size()),
                others,
                BlockIds.empty(),
                NO_BLOCKS,
                NO_BLOCKS));
  }

  /** Has the rank read the blocks of some slots where they are lent; says where the next ones begin. */
  private int place(int[] slots, int first, int[] lent) {
    for (int i = 0; i < lent.length; i++) {
      segment.place(slots[first + i], lent[i]);
    }
    return first + lent.length;
  }

  /**
   * Has a store read blocks and lend them.
   *
   * @param done gets the slots of the first blocks, the caller's then; those that are missing may be loaded
   */
  void fetch(String requestId, BlockIds ids, LoadSlots slots, Consumer<int[]> done) {
    run(loads, requestId, () -> fetch(ids, slots), NO_BLOCKS, done);
  }

  private int[] fetch(BlockIds ids, LoadSlots slots) throws InterruptedException {
    long start = System.nanoTime();
    @Nullable Fetch task = calls.load(() -> slots.fetch(hasher.ofRank(rank, ids)));
    if (task == null) {
      return NO_BLOCKS;
    }
    TransferResult _ = calls.await("load", task);
    int[] fetched = slots.fetched(task);
    metrics.fetched(fetched.length, System.nanoTime() - start);
    return fetched;
  }

  /** Counts blocks of a request that are read where the store has them. */
  void borrowed(int blocks) {
    metrics.borrowed(blocks);
  }

  /**
   * Saves blocks from slots.
   *
   * @param done called when the slots may be written again
   * @param kept called after that, by {@link #whenKept}; null when nobody waits for it
   */
  void save(String requestId, BlockIds ids, int[] slots, Runnable done, @Nullable Runnable kept) {
    RequestPlan plan =
        new RequestPlan(requestId, BlockIds.empty(), NO_BLOCKS, ids, slots, NO_BLOCKS);
    AtomicReference<@Nullable Task> dump = new AtomicReference<>();
    run(
        saves,
        requestId,
        () -> save(plan, dump),
        0,
        _ -> {
          done.run();
          Task task = dump.get();
          if (kept != null && task != null) {
            whenKept(store, task, kept);
          } else if (kept != null) {
            kept.run();
          }
        });
  }

  /**
   * Runs an action when the blocks of a dump are where they can be found: with an upper stage, as long as the last
   * one has room for all that is on its way to it; else with the last one, or refused by it, so that nothing is
   * told as stored that a full store refuses. The action must not block and must not throw.
   */
  static void whenKept(Store store, Task dump, Runnable action) {
    dump.whenTerminal(
        () -> {
          if (hasRoom(store)) {
            action.run();
          } else {
            dump.whenSettled(action);
          }
        });
  }

  private static boolean hasRoom(Store store) {
    try {
      return store.hasRoom(0);
    } catch (RuntimeException _) {
      // How the dump ends says why.
      return false;
    }
  }

  private interface Move<T> {
    T run() throws InterruptedException;
  }

  private <T> void run(
      ExecutorService threads, String requestId, Move<T> move, T nothing, Consumer<T> done) {
    try {
      threads.execute(() -> done.accept(moved(requestId, move, nothing)));
    } catch (RejectedExecutionException e) {
      done.accept(nothing);
    }
  }

  private <T> T moved(String requestId, Move<T> move, T nothing) {
    try {
      return move.run();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      LOG.warn("rank {}: blocks of {} are not moved: {}", rank, requestId, e.toString());
    }
    return nothing;
  }

  private int load(RequestPlan plan) throws InterruptedException {
    int[] slots = plan.loadBlocks();
    metrics.begins(slots.length, 0);
    long start = System.nanoTime();
    FailedLoads failed = new FailedLoads();
    @Nullable Task task = calls.load(transfer(plan.loadIds(), slots));
    if (task == null) {
      for (int slot : slots) {
        failed.blocks().set(slot);
      }
    } else {
      TransferResult result = calls.await("load", task);
      failed.add(result, shard -> slots[shard / layout.shardCount()]);
    }
    metrics.loaded(new StepPlan(List.of(plan)), System.nanoTime() - start, failed);
    metrics.ends(failed.blocks().cardinality(), 0);
    return leading(slots, failed.blocks());
  }

  private int save(RequestPlan plan, AtomicReference<@Nullable Task> dump)
      throws InterruptedException {
    Transfer transfer = transfer(plan.saveIds(), plan.saveBlocks());
    metrics.begins(0, plan.saveBlocks().length);
    long start = System.nanoTime();
    @Nullable Task task = calls.dump(transfer);
    dump.set(task);
    int saved = task == null ? 0 : calls.await("dump", task).okCount();
    metrics.saved(
        new StepPlan(List.of(plan)), saved * layout.shardSize(), System.nanoTime() - start);
    metrics.ends(0, task == null ? 0 : transfer.shardCount() - saved);
    return saved / layout.shardCount();
  }

  private Transfer transfer(BlockIds ids, int[] slots) {
    BlockIds own = hasher.ofRank(rank, ids);
    int shards = layout.shardCount();
    Transfer.Builder transfer = Transfer.packed(layout).expect(slots.length * shards);
    for (int i = 0; i < slots.length; i++) {
      long at = segment.offset(slots[i]);
      for (int shard = 0; shard < shards; shard++) {
        transfer.shard(own, i, shard).piece(segment.region(), at + shard * layout.shardSize());
      }
    }
    return transfer.build();
  }

  private static int leading(int[] slots, BitSet failed) {
    int count = 0;
    while (count < slots.length && !failed.get(slots[count])) {
      count++;
    }
    return count;
  }

  /** Waits for the transfers under way; then the slots are gone. */
  @Override
  public void close() {
    loads.shutdown();
    saves.shutdown();
    boolean ended = false;
    try {
      ended =
          loads.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)
              && saves.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (!ended) {
      LOG.warn(
          "rank {}: transfers did not end within {} s; their slots in {} are not unmapped",
          rank,
          CLOSE_SECONDS,
          segment.path());
      return;
    }
    segment.close();
  }
}
