package ucm.lite.tier;

import java.util.Arrays;
import ucm.lite.policy.BlockCache;
import ucm.lite.policy.LruCache;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;

/**
 * Simulates the tiers of a cluster over a recorded trace.
 *
 * <p>A request is looked up from its first block on, each block in the HBM of its engine, then in
 * the DRAM and the storage it can reach; the first block found nowhere ends the hits, and all from
 * there on are computed. A block found below HBM is copied up: to HBM, and with write-through from
 * storage into DRAM, too. A block found in a tier is touched in that tier alone. Requests are served
 * one after the other, so a block is there for the next request.
 *
 * <p>Memory: 12 bytes a distinct block for each cache (one an engine, one or all nodes' DRAM, one or
 * all nodes' storage).
 */
public final class TierSimulation {
  /** Is told where the prompt of each request was found; the tokens not named were computed. */
  interface TierListener {
    void served(NumberedRequest request, int hbmTokens, int dramTokens, int storageTokens);
  }

  private static final long RECORDED_BYTES = 48;
  private static final long CACHE_BYTES = 12;

  private static final int HBM = 0;
  private static final int DRAM = 1;
  private static final int STORAGE = 2;
  private static final int NOWHERE = 3;

  private final TierPlan plan;
  private final TouchOrder order;
  private final TierListener listener;
  private final Router router;
  private final LruCache[] hbm;
  private final LruCache[] dram;
  private final LruCache[] storage;
  private final long[] blocksFound = new long[NOWHERE + 1];
  private final long[] tokensFound = new long[NOWHERE + 1];

  /** The tokens of the request at hand by where they were found, and for each block, where. */
  private final int[] tokensHere = new int[NOWHERE + 1];

  private int[] found = new int[256];
  private long dramWrites;
  private long storageWrites;

  private TierSimulation(TierPlan plan, TouchOrder order, int blocks, TierListener listener) {
    this.plan = plan;
    this.order = order;
    this.listener = listener;
    this.router = new Router(plan.routing(), plan.ranks(), blocks);
    this.hbm = caches(plan.ranks(), plan.hbmBlocks(), blocks);
    this.dram =
        plan.sharedDram()
            ? caches(1, plan.dramBlocks() * plan.nodes(), blocks)
            : caches(plan.nodes(), plan.dramBlocks(), blocks);
    this.storage = caches(plan.sharedStorage() ? 1 : plan.nodes(), plan.storageBlocks(), blocks);
  }

  private static LruCache[] caches(int count, long capacity, int blocks) {
    int held = (int) Math.min(capacity, blocks);
    LruCache[] caches = new LruCache[count];
    for (int c = 0; c < count; c++) {
      caches[c] = new LruCache(held, held == 0 ? 0 : blocks);
    }
    return caches;
  }

  /** Bytes that a distinct block takes in a simulation, with the recording. */
  public static long bytesABlock(TierPlan plan) {
    int caches = plan.hbmBlocks() > 0 ? plan.ranks() : 0;
    caches += plan.dramBlocks() == 0 ? 0 : plan.sharedDram() ? 1 : plan.nodes();
    caches += plan.storageBlocks() == 0 ? 0 : plan.sharedStorage() ? 1 : plan.nodes();
    return RECORDED_BYTES + CACHE_BYTES * caches;
  }

  /** Runs a plan over a trace. Blocks until done. */
  public static TierResult run(RecordedTrace trace, TierPlan plan, TouchOrder order)
      throws InterruptedException {
    return run(trace, plan, order, (_, _, _, _) -> {});
  }

  static TierResult run(RecordedTrace trace, TierPlan plan, TouchOrder order, TierListener listener)
      throws InterruptedException {
    TierSimulation simulation = new TierSimulation(plan, order, trace.uniqueBlocks(), listener);
    trace.feed(simulation::accept);
    return simulation.result();
  }

  private void accept(NumberedRequest request) {
    int rank = router.rankOf(request);
    int node = rank / plan.ranksPerNode();
    LruCache nearest = hbm[rank];
    LruCache middle = dram[plan.sharedDram() ? 0 : node];
    LruCache last = storage[plan.sharedStorage() ? 0 : node];
    lookUp(request, nearest, middle, last);
    for (int i = 0; i < request.count; i++) {
      int at = order == TouchOrder.LEAF_LAST ? i : request.count - 1 - i;
      touch(request.blocks[at], found[at], nearest, middle, last);
    }
  }

  private void lookUp(NumberedRequest request, LruCache nearest, LruCache middle, LruCache last) {
    if (request.count > found.length) {
      found = new int[2 * request.count];
    }
    Arrays.fill(tokensHere, 0);
    boolean unbroken = true;
    for (int i = 0; i < request.count; i++) {
      // What occurs twice in a request for the first time is not there yet.
      unbroken &= i < request.known;
      int where = unbroken ? find(request.blocks[i], nearest, middle, last) : NOWHERE;
      unbroken = where != NOWHERE;
      found[i] = where;
      blocksFound[where]++;
      tokensHere[where] += request.prefixTokens(i + 1) - request.prefixTokens(i);
    }
    for (int f = 0; f < tokensHere.length; f++) {
      tokensFound[f] += tokensHere[f];
    }
    listener.served(request, tokensHere[HBM], tokensHere[DRAM], tokensHere[STORAGE]);
  }

  private static int find(int block, LruCache nearest, LruCache middle, LruCache last) {
    if (nearest.capacity > 0 && nearest.contains(block)) {
      return HBM;
    }
    if (middle.capacity > 0 && middle.contains(block)) {
      return DRAM;
    }
    return last.capacity > 0 && last.contains(block) ? STORAGE : NOWHERE;
  }

  private void touch(int block, int where, LruCache nearest, LruCache middle, LruCache last) {
    if (plan.writePolicy() == WritePolicy.WRITE_THROUGH) {
      if (where != HBM && where != DRAM) {
        writeDram(block, middle);
        writeStorage(block, last);
      } else if (where == DRAM) {
        middle.touch(block);
      }
      if (nearest.capacity > 0) {
        nearest.touch(block);
      }
      return;
    }
    if (where == DRAM) {
      middle.touch(block);
    } else if (where == STORAGE) {
      last.touch(block);
    }
    if (nearest.capacity == 0) {
      if (where == NOWHERE) {
        leaveHbm(block, middle, last);
      }
      return;
    }
    int evicted = nearest.touch(block);
    if (evicted != BlockCache.NOTHING) {
      leaveHbm(evicted, middle, last);
    }
  }

  private void leaveHbm(int block, LruCache middle, LruCache last) {
    int evicted = middle.capacity == 0 ? block : writeDram(block, middle);
    if (evicted != BlockCache.NOTHING) {
      writeStorage(evicted, last);
    }
  }

  /** Touches or inserts a block; returns what was evicted for it. */
  private int writeDram(int block, LruCache middle) {
    if (middle.capacity == 0) {
      return BlockCache.NOTHING;
    }
    dramWrites += middle.contains(block) ? 0 : 1;
    return middle.touch(block);
  }

  private void writeStorage(int block, LruCache last) {
    if (last.capacity > 0) {
      storageWrites += last.contains(block) ? 0 : 1;
      last.touch(block);
    }
  }

  private TierResult result() {
    return new TierResult(
        blocksFound[HBM],
        blocksFound[DRAM],
        blocksFound[STORAGE],
        blocksFound[NOWHERE],
        tokensFound[HBM],
        tokensFound[DRAM],
        tokensFound[STORAGE],
        dramWrites,
        storageWrites,
        router.imbalance());
  }
}
