package ucm.cli.replay;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.cli.replay.RequestFunnel.MissReason;
import ucm.cli.runtime.EngineMemory;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.HitPolicy;
import ucm.pipeline.connector.statistics.StageLookups;

/**
 * Says of each token of the request to be explained, the last one that is sent, what became of it.
 *
 * <p>A block after the first one that is missing cannot be used, even when it is there; it shares
 * the fate of that one.
 */
final class ExplainedReplay extends StoreReplay {

  private final StageLookups lookups;
  private final boolean removes;
  private final long salt;
  // What the simulated engine has on its device, the least recently used first.
  private final SequencedSet<BlockIds> hbm = new LinkedHashSet<>();
  private final int hbmBlocks;
  // Also asked by the thread that cleans up after Ctrl-C.
  private final Set<BlockIds> written = ConcurrentHashMap.newKeySet();
  private final Set<BlockIds> stored = new HashSet<>();
  private final Set<BlockIds> damaged = new HashSet<>();
  // Of tasks that were given up: the store may move them yet.
  private final List<EngineMemory> stillUsed = new ArrayList<>();
  private long refusedDumps;
  private @Nullable TraceRequest request;
  private RequestFunnel funnel = new RequestFunnel();

  /**
   * A replay up to the request to explain, from 1 on.
   *
   * @param layout of one shard a block
   * @param hbmBlocks room of the simulated engine
   * @param removes whether to use ids of this replay alone, and to remove their blocks at the end
   */
  ExplainedReplay(
      Store store,
      StageLookups lookups,
      BlockLayout layout,
      Duration timeout,
      ConnectorSettings settings,
      int hbmBlocks,
      long target,
      boolean removes) {
    super(store, layout, timeout, target, settings);
    this.lookups = lookups;
    this.hbmBlocks = hbmBlocks;
    this.removes = removes;
    this.salt = removes ? new SecureRandom().nextLong() : 0;
  }

  private static BlockIds one(BlockIds ids, int i) {
    return ids.slice(i, i + 1);
  }

  private BlockIds salted(BlockIds ids) {
    long[] words = new long[2 * ids.size()];
    for (int i = 0; i < ids.size(); i++) {
      words[2 * i] = ids.high(i) ^ salt;
      words[2 * i + 1] = ids.low(i) ^ salt;
    }
    return BlockIds.wrap(words);
  }

  @Override
  void serve(TraceRequest next, HitPolicy policy) throws InterruptedException {
    request = next;
    funnel = new RequestFunnel();
    int tokens = next.inputTokens();
    int blockTokens = next.blockTokens();
    funnel.asked += tokens;
    if (policy.skips(tokens)) {
      funnel.miss(MissReason.TOO_SHORT, tokens);
      return;
    }
    BlockIds ids = salted(storeIds(next));
    // Some traces name the block of the last tokens too, which no engine stores before it is full.
    BlockIds full = ids.slice(0, Math.min(ids.size(), tokens / blockTokens));
    funnel.miss(MissReason.TOO_SHORT, tokens - (long) full.size() * blockTokens);
    makeRoom(full.size());
    int onDevice = onDevice(full);
    funnel.hbm += (long) onDevice * blockTokens;
    int offered = lookup(full, onDevice, blockTokens);
    int found = policy.loaded(onDevice, offered, tokens);
    funnel.miss(MissReason.NOT_USED, (long) (offered - found) * blockTokens);
    int end = onDevice + (found == 0 ? 0 : load(full, onDevice, found, blockTokens));
    memory.fill(full, end, full.size());
    if (end < full.size()) {
      save(full, end);
    }
  }

  /** How many blocks of a prompt from the first one on are on the device; then all of them are. */
  private int onDevice(BlockIds ids) {
    int run = 0;
    while (run < ids.size() && hbm.contains(one(ids, run))) {
      run++;
    }
    // The last block first, so that leaves are forgotten before roots.
    for (int i = ids.size() - 1; i >= 0; i--) {
      hbm.addLast(one(ids, i));
      if (hbm.size() > hbmBlocks) {
        hbm.removeFirst();
      }
    }
    return run;
  }

  /** Asks for what is not on the device; returns how many blocks are found. */
  private int lookup(BlockIds ids, int from, int blockTokens) {
    List<String> stages = lookups.stages();
    StageLookups.Sums before = lookups.sums();
    int found = 0;
    boolean failed = false;
    try {
      found = store.lookupPrefix(ids.slice(from, ids.size())) + 1;
    } catch (StoreException e) {
      failed = true;
    }
    int[] foundIn = lookups.foundIn(before, found, 1);
    for (int i = 0; i < foundIn.length; i++) {
      funnel.find(stages.get(i), (long) foundIn[i] * blockTokens);
    }
    boolean down = failed || lookups.isDownSince(before);
    MissReason first = null;
    for (int i = from + found; i < ids.size(); i++) {
      MissReason own = down ? MissReason.STORE_DOWN : missing(one(ids, i));
      // What was never stored is no victim of the gap before it.
      first = first == null ? own : first;
      funnel.miss(own == MissReason.NEVER_STORED ? own : first, blockTokens);
    }
    return found;
  }

  private MissReason missing(BlockIds id) {
    return damaged.contains(id)
        ? MissReason.CORRUPT
        : stored.contains(id) ? MissReason.EVICTED : MissReason.NEVER_STORED;
  }

  /** Loads some blocks; returns how many of them, from the first one on, can be used. */
  private int load(BlockIds ids, int from, int found, int blockTokens) throws InterruptedException {
    TransferResult result;
    try {
      result = await(store.load(memory.transfer(ids, from, from + found)));
    } catch (StoreException e) {
      funnel.miss(MissReason.STORE_DOWN, (long) found * blockTokens);
      return 0;
    }
    int used = found;
    for (int i = 0; i < found; i++) {
      ShardOutcome outcome = result.outcome(i);
      if (outcome == ShardOutcome.OK) {
        funnel.loaded += blockTokens;
      } else {
        funnel.miss(reason(outcome, one(ids, from + i)), blockTokens);
        used = Math.min(used, i);
      }
    }
    funnel.used += (long) used * blockTokens;
    if (store.keepsBytes()) {
      memory.verify(ids, from, from + used);
    }
    return used;
  }

  /** Waits for a task; one that is given up keeps its memory. */
  private TransferResult await(Task task) throws InterruptedException {
    try {
      return task.await(timeout);
    } catch (StoreTimeoutException e) {
      stillUsed.add(memory);
      memory = new EngineMemory(layout, memory.pages());
      throw e;
    }
  }

  private MissReason reason(ShardOutcome outcome, BlockIds id) {
    return switch (outcome) {
      case CORRUPT -> {
        damaged.add(id);
        yield MissReason.CORRUPT;
      }
      case MISSING -> MissReason.EVICTED;
      default -> MissReason.STORE_DOWN;
    };
  }

  /** Stores what the simulated engine computed; a block that is refused was not stored. */
  private void save(BlockIds ids, int from) throws InterruptedException {
    for (int i = from; removes && i < ids.size(); i++) {
      written.add(one(ids, i));
    }
    try {
      TransferResult result = await(store.dump(memory.transfer(ids, from, ids.size())));
      for (int i = from; i < ids.size(); i++) {
        if (result.outcome(i - from) == ShardOutcome.OK) {
          stored.add(one(ids, i));
          damaged.remove(one(ids, i));
        }
      }
    } catch (StoreException e) {
      // Nothing of it is stored; later look-ups say what that costs.
      refusedDumps++;
    }
  }

  /** How many requests could not store what they computed. */
  long refusedDumps() {
    return refusedDumps;
  }

  /** The last request that was sent, or null when there was none. */
  @Nullable TraceRequest request() {
    return request;
  }

  RequestFunnel funnel() {
    return funnel;
  }

  @Override
  public void close() {
    try {
      removeWritten();
    } finally {
      super.close();
      stillUsed.forEach(EngineMemory::close);
    }
  }

  private void removeWritten() {
    if (written.isEmpty()) {
      return;
    }
    try {
      store.flush(timeout);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    long left = written.stream().filter(id -> !store.remove(id).get(0)).count();
    if (left > 0) {
      throw new StoreException(
          left + " of " + written.size() + " blocks could not be removed from " + store.name());
    }
  }
}
