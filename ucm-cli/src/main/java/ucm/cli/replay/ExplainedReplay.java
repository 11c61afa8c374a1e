package ucm.cli.replay;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
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
import ucm.cli.runtime.EngineMemory;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.HitPolicy;
import ucm.pipeline.connector.statistics.StageLookups;

/**
 * Sends the requests of a trace through a store, one after the other, up to the one to be explained,
 * and says of each token of it what became of it. Used by one thread.
 *
 * <p>A block after the first one that is missing cannot be used, even when it is there; it shares
 * the fate of that one.
 */
final class ExplainedReplay implements TraceVisitor, AutoCloseable {

  private static final int FIRST_PAGES = 256;

  private final Store store;
  private final StageLookups lookups;
  private final BlockLayout layout;
  private final Duration timeout;
  private final ConnectorSettings settings;
  private final SimulatedHbm hbm;
  private final long target;
  private final boolean removes;
  private final long salt;
  // Also asked by the thread that cleans up after Ctrl-C.
  private final Set<BlockIds> written = ConcurrentHashMap.newKeySet();
  private final Set<BlockIds> stored = new HashSet<>();
  private final Set<BlockIds> damaged = new HashSet<>();
  private final long[] hitsBefore;
  // Of tasks that were given up: the store may move them yet.
  private final List<EngineMemory> stillUsed = new ArrayList<>();
  private EngineMemory memory;
  private long requests;
  private long refusedDumps;
  private @Nullable TraceRequest request;
  private RequestFunnel funnel = new RequestFunnel();

  /**
   * A replay.
   *
   * @param store closed with the replay
   * @param lookups counts the look-ups of each stage
   * @param timeout for each task
   * @param settings say which requests are left alone, and how much of what is found is used
   * @param hbmBlocks room of the simulated engine
   * @param target the request to explain, from 1 on
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
    this.store = store;
    this.lookups = lookups;
    this.layout = layout;
    this.timeout = timeout;
    this.settings = settings;
    this.hbm = new SimulatedHbm(hbmBlocks);
    this.target = target;
    this.removes = removes;
    this.salt = removes ? new SecureRandom().nextLong() : 0;
    this.hitsBefore = new long[lookups.stages().size()];
    this.memory = new EngineMemory(layout, FIRST_PAGES);
  }

  @Override
  public void request(TraceRequest next) {
    if (requests == target) {
      return;
    }
    requests++;
    request = next;
    funnel = new RequestFunnel();
    try {
      serve(next, salted(TraceReplay.storeIds(next)), funnel);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("the replay was interrupted", e);
    }
  }

  private BlockIds salted(BlockIds ids) {
    if (salt == 0) {
      return ids;
    }
    long[] words = new long[2 * ids.size()];
    for (int i = 0; i < ids.size(); i++) {
      words[2 * i] = ids.high(i) ^ salt;
      words[2 * i + 1] = ids.low(i) ^ salt;
    }
    return BlockIds.wrap(words);
  }

  private void serve(TraceRequest next, BlockIds ids, RequestFunnel into)
      throws InterruptedException {
    int tokens = next.inputTokens();
    into.ask(tokens);
    HitPolicy policy = new HitPolicy(settings, next.blockTokens());
    if (policy.skips(tokens)) {
      into.miss(MissReason.TOO_SHORT, tokens);
      return;
    }
    // Some traces name the block of the last tokens too, which no engine stores before it is full.
    BlockIds full = ids.slice(0, Math.min(ids.size(), tokens / next.blockTokens()));
    into.miss(MissReason.TOO_SHORT, tokens - (long) full.size() * next.blockTokens());
    if (full.size() > memory.pages()) {
      memory.close();
      memory = new EngineMemory(layout, 2 * full.size());
    }
    int onDevice = hbm.serve(full);
    into.hitHbm((long) onDevice * next.blockTokens());
    int end = loadFound(next, full, onDevice, policy, into);
    memory.fill(full, end, full.size());
    save(full, end);
  }

  /** Looks up and loads what is not on the device; returns where that ends. */
  private int loadFound(
      TraceRequest next, BlockIds ids, int from, HitPolicy policy, RequestFunnel into)
      throws InterruptedException {
    int blockTokens = next.blockTokens();
    int offered = lookup(next, ids, from, into);
    int found = policy.loaded(from, offered, next.inputTokens());
    into.miss(MissReason.NOT_USED, (long) (offered - found) * blockTokens);
    if (found == 0) {
      return from;
    }
    int end = from + found;
    TransferResult result;
    try {
      result = await(store.load(memory.transfer(ids, from, end)));
    } catch (StoreException e) {
      into.miss(MissReason.STORE_DOWN, (long) found * blockTokens);
      return from;
    }
    int used = found;
    for (int i = 0; i < found; i++) {
      ShardOutcome outcome = outcome(result, i);
      if (outcome == ShardOutcome.OK) {
        into.load(blockTokens);
      } else {
        into.miss(reason(outcome, ids, from + i), blockTokens);
        used = Math.min(used, i);
      }
    }
    into.use((long) used * blockTokens);
    if (store.keepsBytes()) {
      memory.verify(ids, from, from + used);
    }
    return from + used;
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

  private int lookup(TraceRequest next, BlockIds ids, int from, RequestFunnel into) {
    long unanswered = lookups.unanswered();
    for (int i = 0; i < hitsBefore.length; i++) {
      hitsBefore[i] = lookups.hits(i);
    }
    int found = 0;
    boolean failed = false;
    try {
      found = store.lookupPrefix(ids.slice(from, ids.size())) + 1;
    } catch (StoreException e) {
      failed = true;
    }
    findInTiers(found, next.blockTokens(), into);
    boolean down = failed || lookups.unanswered() > unanswered;
    MissReason first = null;
    for (int i = from + found; i < ids.size(); i++) {
      MissReason own = down ? MissReason.STORE_DOWN : missing(ids.slice(i, i + 1));
      // What was never stored is no victim of the gap before it.
      first = first == null ? own : first;
      into.miss(own == MissReason.NEVER_STORED ? own : first, next.blockTokens());
    }
    return found;
  }

  private MissReason missing(BlockIds id) {
    if (damaged.contains(id)) {
      return MissReason.CORRUPT;
    }
    return stored.contains(id) ? MissReason.EVICTED : MissReason.NEVER_STORED;
  }

  /** The last stage has what the upper stages do not report. */
  private void findInTiers(int found, int blockTokens, RequestFunnel into) {
    int left = found;
    for (int i = 0; i < hitsBefore.length; i++) {
      long hits = lookups.hits(i) - hitsBefore[i];
      int here = i == hitsBefore.length - 1 ? left : (int) Math.min(left, hits);
      into.find(lookups.stages().get(i), (long) here * blockTokens);
      left -= here;
    }
  }

  private ShardOutcome outcome(TransferResult result, int block) {
    int shards = layout.shardCount();
    for (int shard = block * shards; shard < (block + 1) * shards; shard++) {
      if (result.outcome(shard) != ShardOutcome.OK) {
        return result.outcome(shard);
      }
    }
    return ShardOutcome.OK;
  }

  private MissReason reason(ShardOutcome outcome, BlockIds ids, int i) {
    return switch (outcome) {
      case CORRUPT -> {
        damaged.add(ids.slice(i, i + 1));
        yield MissReason.CORRUPT;
      }
      case MISSING -> MissReason.EVICTED;
      default -> MissReason.STORE_DOWN;
    };
  }

  /** Stores what the simulated engine computed; a block that is refused was not stored. */
  private void save(BlockIds ids, int from) throws InterruptedException {
    if (from == ids.size()) {
      return;
    }
    for (int i = from; removes && i < ids.size(); i++) {
      written.add(ids.slice(i, i + 1));
    }
    try {
      TransferResult result = await(store.dump(memory.transfer(ids, from, ids.size())));
      for (int i = 0; i < ids.size() - from; i++) {
        if (outcome(result, i) == ShardOutcome.OK) {
          BlockIds id = ids.slice(from + i, from + i + 1);
          stored.add(id);
          damaged.remove(id);
        }
      }
    } catch (StoreException e) {
      // Nothing of it is stored; later look-ups say what that costs.
      refusedDumps++;
    }
  }

  /** How many requests were sent. */
  long requests() {
    return requests;
  }

  /** How many requests could not store what they computed. */
  long refusedDumps() {
    return refusedDumps;
  }

  /** The last request that was sent, or null when there was none. */
  @Nullable TraceRequest request() {
    return request;
  }

  /** What became of it. */
  RequestFunnel funnel() {
    return funnel;
  }

  @Override
  public void close() {
    try {
      removeWritten();
    } finally {
      // First: until then it may still move what was under way, from and to the memory.
      store.close();
      memory.close();
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
    int left = 0;
    for (BlockIds id : written) {
      left += store.remove(id).get(0) ? 0 : 1;
    }
    if (left > 0) {
      throw new StoreException(
          left + " of " + written.size() + " blocks could not be removed from " + store.name());
    }
  }
}
