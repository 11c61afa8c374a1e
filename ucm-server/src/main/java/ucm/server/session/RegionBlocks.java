package ucm.server.session;

import java.io.IOException;
import java.time.Duration;
import java.util.BitSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.pipeline.Pipeline;
import ucm.platform.thread.ThreadEnd;
import ucm.server.protocol.NamedFields.ChunksMessage;
import ucm.server.protocol.NamedFields.RegionMessage;
import ucm.server.protocol.ProtocolException;
import ucm.server.staging.EngineRegion;

/**
 * Moves blocks between the pipeline and a worker's own memory, without a slot between. Thread-safe.
 *
 * <p>The memory is the pipeline's as long as a task runs, so a move is answered when its task has completed,
 * however late: a worker that does not want to wait that long ends the daemon.
 */
public final class RegionBlocks implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(RegionBlocks.class);
  // Each task has a deadline in its store; this is for a store that does not keep it.
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  private final String engine;
  private final Pipeline pipeline;
  private final Admission admission;
  private final UnaryOperator<BlockIds> names;
  private final BlockLayout layout;
  private final EngineRegion region;
  // Answers: they look blocks up and write to the socket, which the thread that ends a task must
  // not.
  private final ExecutorService executor;
  // Guarded by this.
  private int moving;

  /**
   * @param names of the worker's names of blocks those under which they are stored
   */
  RegionBlocks(
      String engine,
      EngineBlocks blocks,
      UnaryOperator<BlockIds> names,
      RegionMessage fields,
      int processId)
      throws IOException {
    this.names = names;
    this.engine = engine;
    pipeline = blocks.pipeline;
    admission = blocks.admission;
    layout = blocks.layout.blockLayout();
    region =
        EngineRegion.open(
            processId, fields.descriptor(), fields.byteSize(), fields.inode(), layout.blockSize());
    executor =
        Executors.newSingleThreadExecutor(
            Thread.ofPlatform().daemon().name("ucm-serve-region").factory());
  }

  /**
   * Stores blocks.
   *
   * @param answer gets those that are stored when none of the memory is read any more; called once, unless
   *     this is closed
   * @throws ProtocolException when the region has no such chunks
   */
  public void store(ChunksMessage blocks, Consumer<BitSet> answer) throws ProtocolException {
    BlockIds ids = names.apply(blocks.ids());
    Transfer transfer = transfer(ids, blocks.chunks());
    if (!admission.begin(() -> move(transfer, true, _ -> pipeline.lookup(ids), answer))) {
      answer(() -> pipeline.lookup(ids), answer);
    }
  }

  /**
   * Loads blocks.
   *
   * @param answer gets those whose bytes are there when none of the memory is written any more; called once,
   *     unless this is closed
   * @throws ProtocolException when the region has no such chunks
   */
  public void load(ChunksMessage blocks, Consumer<BitSet> answer) throws ProtocolException {
    BlockIds ids = names.apply(blocks.ids());
    move(transfer(ids, blocks.chunks()), false, RegionBlocks::moved, answer);
  }

  private static BitSet moved(TransferResult result) {
    BitSet moved = result.failedShards();
    moved.flip(0, result.okCount() + result.failedCount());
    return moved;
  }

  private void move(
      Transfer transfer,
      boolean isDump,
      Function<TransferResult, BitSet> outcome,
      Consumer<BitSet> answer) {
    begin();
    Task task;
    try {
      task = isDump ? pipeline.dump(transfer) : pipeline.load(transfer);
    } catch (StoreException e) {
      LOG.warn("{}: {} blocks are not moved: {}", engine, transfer.shardCount(), e.toString());
      ended();
      answer(BitSet::new, answer);
      return;
    }
    task.whenTerminal(this::ended);
    Runnable told = () -> answer(() -> outcome.apply(task.result()), answer);
    if (isDump) {
      RankTransfers.whenKept(pipeline, task, told);
    } else {
      task.whenTerminal(told);
    }
  }

  private synchronized void ended() {
    moving--;
    notifyAll();
  }

  private void answer(Supplier<BitSet> outcome, Consumer<BitSet> answer) {
    try {
      executor.execute(() -> answer.accept(told(outcome)));
    } catch (RejectedExecutionException _) {
      // It is closed, and no one waits.
    }
  }

  private synchronized void begin() {
    moving++;
  }

  private Transfer transfer(BlockIds ids, int[] chunks) throws ProtocolException {
    if (chunks.length != ids.size()) {
      throw ProtocolException.bad(
          ids.size() + " blocks are named, and " + chunks.length + " chunks");
    }
    Transfer.Builder builder = Transfer.packed(layout).expect(chunks.length);
    try {
      for (int i = 0; i < chunks.length; i++) {
        builder.shard(ids, i, 0).piece(region.memory(), region.offset(chunks[i]));
      }
    } catch (IndexOutOfBoundsException e) {
      throw ProtocolException.bad("the worker's region has no such chunk: " + e.getMessage());
    }
    return builder.build();
  }

  private BitSet told(Supplier<BitSet> outcome) {
    try {
      return outcome.get();
    } catch (RuntimeException e) {
      LOG.warn("{}: what was moved cannot be told: {}", engine, e.toString());
      return new BitSet();
    }
  }

  /** Waits until nothing uses the worker's memory any more, and forgets it. */
  @Override
  public void close() {
    if (ThreadEnd.await(PATIENCE, this::awaitMoves)) {
      executor.shutdown();
      region.close();
    } else {
      LOG.warn("{}: moves did not end within {}; its memory stays mapped", engine, PATIENCE);
    }
  }

  private synchronized boolean awaitMoves(Duration most) throws InterruptedException {
    long until = System.nanoTime() + most.toNanos();
    while (moving > 0) {
      long left = until - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }
}
