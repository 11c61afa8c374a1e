package ucm.server.session;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLender;
import ucm.api.BlockLender.Fetch;
import ucm.api.BlockLender.Lending;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.server.protocol.WorkerFields.LendingMessage;
import ucm.server.staging.StagingSlots;

/**
 * Where blocks lie that a worker reads: in slots of the segment, which have the first numbers, and in slots of a
 * store which lends them, whose numbers follow. Thread-safe.
 */
final class LoadSlots {

  private static final Logger LOG = LoggerFactory.getLogger(LoadSlots.class);
  private static final Executor LATER =
      CompletableFuture.delayedExecutor(StagingSlots.REST_NANOS, TimeUnit.NANOSECONDS);

  private final StagingSlots staging;
  private final @Nullable BlockLender lender;
  private final int ranks;
  // Those that can read what is lent; guarded by this.
  private final BitSet mapped = new BitSet();
  // Whether all can.
  private volatile boolean lends;

  /**
   * Lends nothing yet.
   *
   * @param head the store that is asked first, which may lend blocks
   * @param ranks how many read each block, or their own part of it
   */
  LoadSlots(StagingSlots staging, Store head, int ranks) {
    this.staging = staging;
    this.ranks = ranks;
    lender = head instanceof BlockLender able ? able : null;
  }

  /**
   * Says where blocks can be lent.
   *
   * @param isMapped whether a rank has mapped that: blocks are lent when all have
   * @param placesAt see {@link LendingMessage}
   * @return of no slots when they cannot
   */
  synchronized LendingMessage lend(int rank, boolean isMapped, long placesAt) {
    Lending lending = lending();
    LendingMessage answer = lending == null ? LendingMessage.NONE : described(lending, placesAt);
    mapped.set(rank, isMapped && answer.slots() > 0);
    lends = mapped.cardinality() == ranks;
    return answer;
  }

  /** Where blocks can be lent; null when they cannot. */
  @Nullable Lending lending() {
    return lender == null ? null : lender.lending();
  }

  private static LendingMessage described(Lending lending, long placesAt) {
    Path memory = Path.of("/proc/self/fd", Integer.toString(lending.descriptor()));
    try {
      return new LendingMessage(
          lending.descriptor(),
          lending.memory().byteSize(),
          lending.slots(),
          lending.stride(),
          ((Number) Files.getAttribute(memory, "unix:ino")).longValue(),
          ((Number) Files.getAttribute(memory, "unix:dev")).longValue(),
          placesAt);
    } catch (IOException e) {
      LOG.warn("no blocks are lent, as their memory cannot be named: {}", e.toString());
      return LendingMessage.NONE;
    }
  }

  /** Whether devices that this process copies to read it by themselves. */
  boolean isPinned() {
    Lending lending = lending();
    return lending != null && lending.isPinned();
  }

  /** A worker is gone. */
  synchronized void endLending(int rank) {
    mapped.clear(rank);
    lends = false;
  }

  boolean lends() {
    return lends;
  }

  /** Borrows the first blocks that the store has in memory: their slots, none of them when it lends nothing. */
  int[] borrow(BlockIds ids) {
    if (lender == null || !lends) {
      return new int[0];
    }
    try {
      return numbered(lender.lend(ids));
    } catch (StoreClosedException e) {
      // What is asked of it next says so.
      return new int[0];
    }
  }

  /**
   * Starts to read blocks that the store does not have in memory.
   *
   * @return null when it lends nothing, or no more
   * @throws ucm.api.StoreException when the store refuses it
   */
  @Nullable Fetch fetch(BlockIds ids) {
    return lender == null || !lends ? null : lender.fetch(ids);
  }

  /** The slots of blocks that were read, which has ended. */
  int[] fetched(Fetch fetch) {
    return numbered(fetch.lent());
  }

  private int[] numbered(int[] lent) {
    return IntStream.of(lent).map(slot -> slot + staging.size()).toArray();
  }

  /** Takes slots of the segment: as many as are to be had, at most those wanted. */
  int[] take(int wanted) {
    return staging.takeForLoads(wanted);
  }

  void give(int[] slots) {
    staging.give(IntStream.of(slots).filter(slot -> slot < staging.size()).toArray());
    giveBack(slots);
  }

  /** Gives slots back from which a client that is gone may still be copying. */
  void giveLater(int[] slots) {
    staging.giveLater(IntStream.of(slots).filter(slot -> slot < staging.size()).toArray());
    LATER.execute(() -> giveBack(slots));
  }

  /** Gives back what the store has lent of some slots. */
  void giveBack(int[] slots) {
    int[] lent =
        IntStream.of(slots)
            .filter(slot -> slot >= staging.size())
            .map(slot -> slot - staging.size())
            .toArray();
    if (lender != null && lent.length > 0) {
      lender.giveBack(lent);
    }
  }
}
