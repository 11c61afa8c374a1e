package ucm.lite.tier;

import java.util.Arrays;
import java.util.function.BiConsumer;
import ucm.lite.policy.BlockCache;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.SessionTracker;
import ucm.lite.record.TouchOrder;
import ucm.platform.table.BlockTable;

/**
 * Simulates the tiers of a cluster over a recorded trace.
 *
 * <p>A request is looked up from its first block on, each block in the HBM of its engine, then in
 * the DRAM, the disks and the storage it can reach; the first block found nowhere ends the hits, and all
 * from there on are computed. A block found below HBM is copied up: to HBM, and with write-through to
 * all tiers between, too. A block found in a tier is touched in that tier alone. Requests are served
 * one after the other, so a block is there for the next request.
 *
 * <p>Memory: 12 bytes a distinct block for each cache: one an engine, one a node for its disks, and one a
 * node or one in all for DRAM and for storage.
 */
public final class TierSimulation {
  /** The tokens of a prompt by the tier in which they were found. */
  record TokensFound(int hbm, int dram, int disk, int storage) {

    int all() {
      return hbm + dram + disk + storage;
    }
  }

  private static final long RECORDED_BYTES = 48;
  private static final long CACHE_BYTES = 12;

  private static final int HBM = 0;
  private static final int DRAM = 1;
  private static final int DISK = 2;
  private static final int STORAGE = 3;
  private static final int NOWHERE = 4;

  private final TierPlan plan;
  private final TouchOrder order;

  /** Is told where the prompt of each request was found; the tokens not named were computed. */
  private final BiConsumer<NumberedRequest, TokensFound> listener;

  private final Router router;

  /** By tier the caches of all engines or machines, or the one of all. */
  private final BlockCache[][] caches;

  /** By tier the cache of the engine at hand. */
  private final BlockCache[] here = new BlockCache[NOWHERE];

  private final long[] blocksFound = new long[NOWHERE + 1];
  private final long[] tokensFound = new long[NOWHERE + 1];
  private final long[] writes = new long[NOWHERE];

  /** The tokens of the request at hand by where they were found, and for each block, where. */
  private final int[] tokensHere = new int[NOWHERE + 1];

  private int[] found = new int[256];

  private TierSimulation(
      TierPlan plan,
      TouchOrder order,
      int blocks,
      BiConsumer<NumberedRequest, TokensFound> listener) {
    this.plan = plan;
    this.order = order;
    this.listener = listener;
    this.router = new Router(plan.routing(), plan.ranks(), blocks);
    int[] counts = counts(plan);
    long[] capacities = plan.capacities();
    capacities[DRAM] *= plan.sharedDram() ? plan.nodes() : 1;
    this.caches = new BlockCache[NOWHERE][];
    for (int tier = HBM; tier < NOWHERE; tier++) {
      caches[tier] = new BlockCache[counts[tier]];
      for (int c = 0; c < counts[tier]; c++) {
        caches[tier][c] =
            SimulatedPolicy.LRU.cache(capacities[tier], capacities[tier] == 0 ? 0 : blocks);
      }
    }
  }

  /** How many caches there are in each tier. */
  private static int[] counts(TierPlan plan) {
    return new int[] {
      plan.ranks(),
      plan.sharedDram() ? 1 : plan.nodes(),
      plan.nodes(),
      plan.sharedStorage() ? 1 : plan.nodes()
    };
  }

  /** Bytes that a distinct block takes in a simulation, with the recording. */
  public static long bytesABlock(TierPlan plan) {
    int[] counts = counts(plan);
    long[] capacities = plan.capacities();
    int all = 0;
    for (int tier = HBM; tier < NOWHERE; tier++) {
      all += capacities[tier] > 0 ? counts[tier] : 0;
    }
    return RECORDED_BYTES + CACHE_BYTES * all;
  }

  /** Runs a plan over a trace. Blocks until done. */
  public static TierResult run(RecordedTrace trace, TierPlan plan, TouchOrder order)
      throws InterruptedException {
    return run(trace, plan, order, (_, _) -> {});
  }

  static TierResult run(
      RecordedTrace trace,
      TierPlan plan,
      TouchOrder order,
      BiConsumer<NumberedRequest, TokensFound> listener)
      throws InterruptedException {
    TierSimulation simulation = new TierSimulation(plan, order, trace.uniqueBlocks(), listener);
    trace.feed(simulation::accept);
    return simulation.result();
  }

  private void accept(NumberedRequest request) {
    int rank = router.rankOf(request);
    int node = rank / plan.ranksPerNode();
    here[HBM] = caches[HBM][rank];
    here[DRAM] = caches[DRAM][plan.sharedDram() ? 0 : node];
    here[DISK] = caches[DISK][node];
    here[STORAGE] = caches[STORAGE][plan.sharedStorage() ? 0 : node];
    lookUp(request);
    for (int i = 0; i < request.count; i++) {
      int at = order == TouchOrder.LEAF_LAST ? i : request.count - 1 - i;
      touch(request.blocks[at], found[at]);
    }
  }

  private void lookUp(NumberedRequest request) {
    if (request.count > found.length) {
      found = new int[2 * request.count];
    }
    Arrays.fill(tokensHere, 0);
    boolean unbroken = true;
    for (int i = 0; i < request.count; i++) {
      // What occurs twice in a request for the first time is not there yet.
      unbroken &= i < request.known;
      int where = unbroken ? HBM : NOWHERE;
      while (where < NOWHERE && !here[where].contains(request.blocks[i])) {
        where++;
      }
      unbroken = where != NOWHERE;
      found[i] = where;
      blocksFound[where]++;
      tokensHere[where] += request.prefixTokens(i + 1) - request.prefixTokens(i);
    }
    for (int f = 0; f < tokensHere.length; f++) {
      tokensFound[f] += tokensHere[f];
    }
    listener.accept(
        request,
        new TokensFound(tokensHere[HBM], tokensHere[DRAM], tokensHere[DISK], tokensHere[STORAGE]));
  }

  private void touch(int block, int where) {
    boolean hasHbm = here[HBM].capacity > 0;
    if (plan.writePolicy() == WritePolicy.WRITE_THROUGH) {
      // Into what is above the tier that has it; a block that was computed, into all.
      for (int tier = DRAM; where != HBM && tier < NOWHERE && tier <= where; tier++) {
        write(tier, block);
      }
      if (hasHbm) {
        here[HBM].touch(block);
      }
      return;
    }
    if (where != HBM && where != NOWHERE) {
      here[where].touch(block);
    }
    int leaving = where == NOWHERE ? block : BlockCache.NOTHING;
    if (hasHbm) {
      leaving = here[HBM].touch(block);
    }
    for (int tier = DRAM; tier < NOWHERE && leaving != BlockCache.NOTHING; tier++) {
      leaving = here[tier].capacity > 0 ? write(tier, leaving) : leaving;
    }
  }

  /** Touches or inserts a block, if there is such a tier; returns what was evicted for it. */
  private int write(int tier, int block) {
    BlockCache cache = here[tier];
    if (cache.capacity == 0) {
      return BlockCache.NOTHING;
    }
    writes[tier] += cache.contains(block) ? 0 : 1;
    return cache.touch(block);
  }

  private TierResult result() {
    return new TierResult(
        blocksFound[HBM],
        blocksFound[DRAM],
        blocksFound[DISK],
        blocksFound[STORAGE],
        blocksFound[NOWHERE],
        tokensFound[HBM],
        tokensFound[DRAM],
        tokensFound[DISK],
        tokensFound[STORAGE],
        writes[DRAM],
        writes[DISK],
        writes[STORAGE],
        router.imbalance());
  }

  /** Deals requests to ranks. */
  private static final class Router {
    private final Routing routing;
    private final SessionTracker sessions;
    private final int[] lastRank;
    private final long[] served;

    Router(Routing routing, int ranks, int uniqueBlocks) {
      this.routing = routing;
      this.sessions = new SessionTracker(routing == Routing.SESSION ? uniqueBlocks : 0);
      this.lastRank = new int[routing == Routing.PREFIX ? uniqueBlocks : 0];
      this.served = new long[ranks];
    }

    int rankOf(NumberedRequest request) {
      int rank =
          switch (routing) {
            case ROUND_ROBIN -> Math.floorMod(request.place, served.length);
            case SESSION ->
                (int) (BlockTable.hash(0, sessions.sessionOf(request)) >>> 33) % served.length;
            case PREFIX -> byPrefix(request);
          };
      served[rank] += request.count;
      return rank;
    }

    private int byPrefix(NumberedRequest request) {
      int rank = 0;
      if (2L * request.known > request.count) {
        rank = lastRank[request.blocks[request.known - 1]];
      } else {
        for (int r = 1; r < served.length; r++) {
          rank = served[r] < served[rank] ? r : rank;
        }
      }
      for (int i = 0; i < request.count; i++) {
        lastRank[request.blocks[i]] = rank;
      }
      return rank;
    }

    /** Blocks of the rank that served the most, as a multiple of the mean. */
    double imbalance() {
      long all = Arrays.stream(served).sum();
      long most = Arrays.stream(served).max().orElse(0);
      return all == 0 ? 1 : (double) most * served.length / all;
    }
  }
}
