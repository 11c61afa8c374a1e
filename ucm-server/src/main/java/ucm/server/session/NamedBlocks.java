package ucm.server.session;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.server.protocol.NamedFields.LeasedMessage;
import ucm.server.protocol.NamedFields.RegionMessage;
import ucm.server.protocol.NamedFields.ReservedMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;

/**
 * The blocks of a worker that names them by itself: no requests, no tokens, no steps. Its slots, holds and
 * saves are those of its engine. What a worker asks is answered by threads of this class, unless the answer is
 * known in memory, so that a look-up which takes long delays nothing else that it sends; of many questions the
 * last ones wait in {@link #exists}, {@link #lease} and {@link #reserve}. A question to a store that fails is answered as if
 * nothing were there. Thread-safe.
 */
public final class NamedBlocks implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(NamedBlocks.class);
  private static final int THREADS = 4;
  private static final int MOST_QUESTIONS = 64;
  private static final int[] NO_SLOTS = {};

  private record Begun(String generation, MessageDigest md5) {}

  private final String engine;
  private final EngineBlocks blocks;
  private final String model;
  private final String firstGeneration;
  private final Supplier<@Nullable String> ownGeneration;
  private final Semaphore questions = new Semaphore(MOST_QUESTIONS);
  private final ExecutorService executor;
  private volatile @Nullable Begun begun;
  // Guarded by this: what begins after the end would be given back by no one.
  private boolean closed;

  /**
   * Of a worker that has registered.
   *
   * @param ownGeneration says in which generation of blocks the engine is since it disowned others; null
   *     before that
   */
  NamedBlocks(String engine, EngineBlocks blocks, Supplier<@Nullable String> ownGeneration) {
    this.engine = engine;
    this.blocks = blocks;
    this.ownGeneration = ownGeneration;
    model = blocks.nameOfModel();
    firstGeneration = blocks.generation();
    executor =
        Executors.newFixedThreadPool(
            THREADS, Thread.ofPlatform().daemon().name("ucm-serve-named-", 0).factory());
  }

  /**
   * Counts the first blocks that are stored.
   *
   * @param answer called once, unless this is closed
   */
  public void exists(BlockIds named, IntConsumer answer) {
    BlockIds ids = stored(named);
    if (areKnown(ids)) {
      answer.accept(ids.size());
      note(() -> leading(ids));
    } else {
      run(() -> answer.accept(leading(ids)), () -> answer.accept(0));
    }
  }

  /**
   * Says which blocks are stored.
   *
   * @param answer called once, unless this is closed
   */
  public void find(BlockIds named, Consumer<BitSet> answer) {
    BlockIds ids = stored(named);
    if (areKnown(ids)) {
      BitSet all = new BitSet(ids.size());
      all.set(0, ids.size());
      answer.accept(all);
      note(() -> blocks.pipeline.lookup(ids));
    } else {
      run(() -> answer.accept(blocks.pipeline.lookup(ids)), () -> answer.accept(new BitSet()));
    }
  }

  /**
   * Opens memory of the worker, so that its blocks move between it and the pipeline.
   *
   * @param processId the worker's process, as it says
   * @throws IOException when that is not the memory which the worker announces
   */
  public RegionBlocks openRegion(RegionMessage region, int processId) throws IOException {
    return new RegionBlocks(engine, blocks, this::stored, region, processId);
  }

  /**
   * Loads the first blocks that are stored, as many as slots are to be had, and holds them until the worker
   * says that it has read them.
   *
   * @param answer called once, unless this is closed
   */
  public void lease(BlockIds named, Consumer<LeasedMessage> answer) {
    BlockIds ids = stored(named);
    run(() -> load(ids, answer), () -> answer.accept(LeasedMessage.NOTHING));
  }

  private void load(BlockIds ids, Consumer<LeasedMessage> answer) {
    int found = leading(ids);
    Holds.@Nullable Hold hold = null;
    synchronized (this) {
      if (!closed && found > 0) {
        hold = blocks.holds.begin(0, 0);
      }
    }
    if (hold == null) {
      answer.accept(new LeasedMessage(0, found, NO_SLOTS));
      return;
    }
    Holds.Hold filling = hold;
    blocks.load(
        engine,
        ids.slice(0, found),
        (loaded, isBroken) -> {
          int[] held = blocks.holds.filled(filling, loaded);
          answer.accept(
              new LeasedMessage(
                  held.length == 0 ? 0 : filling.id, isBroken ? loaded.length : found, held));
        });
  }

  /**
   * Finds slots for blocks that are not stored.
   *
   * @param answer called once, unless this is closed
   */
  public void reserve(BlockIds named, Consumer<ReservedMessage> answer) {
    BlockIds ids = stored(named);
    run(
        () -> answer.accept(reserve(ids)),
        () -> answer.accept(ReservedMessage.nothing(ids.size())));
  }

  private ReservedMessage reserve(BlockIds ids) {
    BitSet missing = blocks.pipeline.lookup(ids);
    missing.flip(0, ids.size());
    int[] taken = NO_SLOTS;
    long save = 0;
    synchronized (this) {
      if (!closed) {
        taken = blocks.slots.takeForSaves(missing.cardinality());
        if (taken.length > 0) {
          BlockIds saved = ids.select(0, missing).slice(0, taken.length);
          save = blocks.saves.begin(engine, saved, taken, CompletableFuture.completedFuture(true));
          taken = save == 0 ? NO_SLOTS : taken;
        }
      }
    }
    int[] slots = new int[ids.size()];
    int next = 0;
    for (int i = 0; i < slots.length; i++) {
      if (!missing.get(i)) {
        slots[i] = ReservedMessage.STORED;
      } else {
        slots[i] = next < taken.length ? taken[next++] : PlannedMessage.NO_SLOT;
      }
    }
    return new ReservedMessage(save, slots);
  }

  /**
   * Stores the blocks of a save, whose slots the worker has filled.
   *
   * @param answer gets how many of the first ones are stored when the slots are free; called once, unless this
   *     is closed
   */
  public void commit(long save, IntConsumer answer) {
    CompletableFuture<BlockIds> settled = blocks.saves.settled(save);
    blocks.saves.saved(0, new long[] {save}, true);
    CompletableFuture<Void> _ =
        settled.thenAcceptAsync(
            ids -> {
              int stored = 0;
              try {
                stored = leading(ids);
              } catch (RuntimeException e) {
                warn(e);
              }
              answer.accept(stored);
            },
            executor);
  }

  /**
   * The names under which blocks are stored: the worker's, with the model, as {@code model_fingerprint}
   * has it, and the generation.
   */
  private BlockIds stored(BlockIds named) {
    String own = ownGeneration.get();
    MessageDigest begun = begun(own == null ? firstGeneration : own);
    byte[] bytes = named.toBytes();
    try {
      for (int at = 0; at < bytes.length; at += BlockIds.ID_BYTES) {
        MessageDigest md5 = (MessageDigest) begun.clone();
        md5.update(bytes, at, BlockIds.ID_BYTES);
        md5.digest(bytes, at, BlockIds.ID_BYTES);
      }
    } catch (DigestException | CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
    return BlockIds.ofBytes(bytes);
  }

  /** What the names of a generation begin with. Names go on from copies of it. */
  private MessageDigest begun(String generation) {
    Begun last = begun;
    if (last == null || !last.generation.equals(generation)) {
      MessageDigest md5 = md5();
      md5.update((model + ";generation:" + generation).getBytes(StandardCharsets.UTF_8));
      last = new Begun(generation, md5);
      begun = last;
    }
    return last.md5;
  }

  private static MessageDigest md5() {
    try {
      return MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("this Java runtime has no MD5, which names the blocks", e);
    }
  }

  private int leading(BlockIds ids) {
    blocks.pipeline.notePrompt(ids);
    return blocks.pipeline.lookupPrefix(ids) + 1;
  }

  /** Has the stores count a question that is answered: the worker does not wait for that. */
  private void note(Runnable question) {
    answer(question, () -> {});
  }

  /** Blocks that are all known need no volume, and waking a thread takes longer than the answer. */
  private boolean areKnown(BlockIds ids) {
    try {
      BitSet known = blocks.pipeline.lookupKnown(ids);
      return known != null && known.nextClearBit(0) >= ids.size();
    } catch (RuntimeException _) {
      // The question says why.
      return false;
    }
  }

  private void answer(Runnable question, Runnable failed) {
    try {
      question.run();
    } catch (RuntimeException e) {
      warn(e);
      failed.run();
    }
  }

  private void run(Runnable question, Runnable failed) {
    questions.acquireUninterruptibly();
    try {
      executor.execute(
          () -> {
            try {
              answer(question, failed);
            } finally {
              questions.release();
            }
          });
    } catch (RejectedExecutionException e) {
      questions.release();
    }
  }

  private void warn(RuntimeException e) {
    LOG.warn("{}: its blocks cannot be looked up: {}", engine, e.toString());
  }

  /** Answers nothing any more. What it holds and saves is given back by its engine. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    executor.shutdown();
  }
}
